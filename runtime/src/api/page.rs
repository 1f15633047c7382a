//! Lists: pages with an opaque cursor, which is the place of the last item in the list's order.

use chrono::{DateTime, Utc};
use data_encoding::BASE64URL_NOPAD;
use serde::Serialize;
use uuid::Uuid;

use super::error::{Problem, Result};
use crate::config::ApiConfig;

const TIME_BYTES: usize = 8;

/// One page of a list. `after` is the cursor for the next one; absent at the end.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub after: Option<String>,
}

impl<T> Page<T> {
    /// A list that is one page.
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, after: None }
    }
}

/// How many items a page has: what was asked for, at most what is allowed.
pub fn limit(asked: Option<u32>, config: &ApiConfig) -> Result<usize> {
    match asked {
        Some(0) => Err(Problem::validation("limit: must be at least 1")),
        asked => Ok(asked.unwrap_or(config.default_page).min(config.max_page) as usize),
    }
}

/// How many rows to ask for: one more than the page has, which tells whether there is a next page.
pub fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

/// Cuts the rows to the page; true when there were more.
pub fn cut<T>(rows: &mut Vec<T>, limit: usize) -> bool {
    let more = rows.len() > limit;
    rows.truncate(limit);
    more
}

/// The place of an item: a time, and an id among those of the same time. The length of the id tells the lists apart.
pub trait Id: AsRef<[u8]> + Sized {
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Id for Uuid {
    fn read(bytes: &[u8]) -> Option<Self> {
        Self::from_slice(bytes).ok()
    }
}

impl Id for Vec<u8> {
    fn read(bytes: &[u8]) -> Option<Self> {
        (bytes.len() == 32).then(|| bytes.to_owned())
    }
}

/// The cursor that stands behind an item.
pub fn cursor<I: Id>(time: DateTime<Utc>, id: &I) -> String {
    BASE64URL_NOPAD.encode(&[&time.timestamp_micros().to_be_bytes()[..], id.as_ref()].concat())
}

/// The place that a cursor names.
pub fn place<I: Id>(cursor: Option<&str>) -> Result<Option<(DateTime<Utc>, I)>> {
    let wrong = || Problem::validation("after: must be a cursor that this list has given");
    cursor.map(|cursor| read(cursor).ok_or_else(wrong)).transpose()
}

fn read<I: Id>(cursor: &str) -> Option<(DateTime<Utc>, I)> {
    let bytes = BASE64URL_NOPAD.decode(cursor.as_bytes()).ok()?;
    let (time, id) = bytes.split_first_chunk::<TIME_BYTES>()?;
    // PostgreSQL knows no time before 4713 BC or after 294276: no list has given such a cursor.
    let time = DateTime::from_timestamp_micros(i64::from_be_bytes(*time)).filter(|time| time.timestamp() >= 0)?;
    Some((time, I::read(id)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_place() {
        let time = DateTime::from_timestamp_micros(1_700_000_000_000_001).unwrap();
        let run = Uuid::now_v7();
        assert_eq!(place(Some(&cursor(time, &run))).unwrap(), Some((time, run)));
        let effect = vec![7_u8; 32];
        assert_eq!(place(Some(&cursor(time, &effect))).unwrap(), Some((time, effect)));
        assert_eq!(place::<Uuid>(None).unwrap(), None);
    }

    #[test]
    fn what_no_list_has_given_is_refused() {
        let time = DateTime::from_timestamp_micros(1_700_000_000_000_001).unwrap();
        let run = cursor(time, &Uuid::now_v7());
        assert!(place::<Vec<u8>>(Some(&run)).is_err());
        let endless = BASE64URL_NOPAD.encode(&[0x7f; 24]);
        let before = BASE64URL_NOPAD.encode(&[0xff; 24]);
        for wrong in ["", "x", "AAAA", &run[1..], &format!("{run}="), &endless, &before] {
            assert!(place::<Uuid>(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_page_is_never_larger_than_allowed() {
        let config = ApiConfig::default();
        assert_eq!(limit(None, &config).unwrap(), 50);
        assert_eq!(limit(Some(3), &config).unwrap(), 3);
        assert_eq!(limit(Some(u32::MAX), &config).unwrap(), 500);
        assert!(limit(Some(0), &config).is_err());
    }

    #[test]
    fn one_row_more_than_the_page_means_another_page() {
        let mut rows = vec![1, 2, 3];
        assert!(cut(&mut rows, 2));
        assert_eq!(rows, [1, 2]);
        assert!(!cut(&mut rows, 2));
    }
}
