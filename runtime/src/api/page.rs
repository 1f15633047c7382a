//! Lists: pages with an opaque cursor, which is the place of the last item in the list's order: a time and an id, a name, a
//! number, or a number and a name. A cursor of one form is refused by lists of another.

use chrono::{DateTime, Utc};
use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::error::{Problem, Result};
use crate::config::ApiConfig;

const TIME_BYTES: usize = 8;
const LONGEST_NAME: usize = 255;

/// How cursors begin that do not begin with a time. A time begins with 0 for two thousand years to come.
const NAME: u8 = 1;
const NUMBER: u8 = 2;
const NUMBER_AND_NAME: u8 = 3;

/// One page of a list. `after` is the cursor for the next one; absent at the end.
#[derive(Debug, Serialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub after: Option<String>,
}

/// What may be asked of a list without filters.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Asked {
    pub after: Option<String>,
    pub limit: Option<u32>,
}

impl<T> Page<T> {
    /// The page of rows that were asked for as [`rows`] says. `cursor` names the place of a row, `view` shows it.
    pub fn of<R>(
        mut rows: Vec<R>,
        limit: usize,
        cursor: impl Fn(&R) -> String,
        view: impl FnMut(R) -> Result<T>,
    ) -> Result<Self> {
        let more = cut(&mut rows, limit);
        let after = rows.last().filter(|_| more).map(cursor);
        Ok(Self { items: rows.into_iter().map(view).collect::<Result<_>>()?, after })
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
    encode(&[&time.timestamp_micros().to_be_bytes(), id.as_ref()])
}

/// The place that a cursor names.
pub fn place<I: Id>(cursor: Option<&str>) -> Result<Option<(DateTime<Utc>, I)>> {
    read(cursor, |bytes| {
        let (time, id) = bytes.split_first_chunk::<TIME_BYTES>().filter(|(time, _)| time[0] == 0)?;
        Some((DateTime::from_timestamp_micros(i64::from_be_bytes(*time))?, I::read(id)?))
    })
}

/// The cursor that stands behind the item of this name.
pub fn name_cursor(name: &str) -> String {
    encode(&[&[NAME], name.as_bytes()])
}

pub fn name_place(cursor: Option<&str>) -> Result<Option<String>> {
    read(cursor, |bytes| name(bytes.strip_prefix(&[NAME])?))
}

/// The cursor that stands behind the item of this number.
pub fn number_cursor(number: impl Into<i64>) -> String {
    let number: i64 = number.into();
    encode(&[&[NUMBER], &number.to_be_bytes()])
}

pub fn number_place<N: TryFrom<i64>>(cursor: Option<&str>) -> Result<Option<N>> {
    read(cursor, |bytes| number(bytes.strip_prefix(&[NUMBER])?.try_into().ok()?))
}

/// The cursor that stands behind the item of this name among those of the number.
pub fn number_and_name_cursor(number: i32, name: &str) -> String {
    encode(&[&[NUMBER_AND_NAME], &i64::from(number).to_be_bytes(), name.as_bytes()])
}

pub fn number_and_name_place(cursor: Option<&str>) -> Result<Option<(i32, String)>> {
    read(cursor, |bytes| {
        let (first, rest) = bytes.strip_prefix(&[NUMBER_AND_NAME])?.split_first_chunk()?;
        Some((number(*first)?, name(rest)?))
    })
}

fn encode(parts: &[&[u8]]) -> String {
    BASE64URL_NOPAD.encode(&parts.concat())
}

fn read<P>(cursor: Option<&str>, place: impl Fn(&[u8]) -> Option<P>) -> Result<Option<P>> {
    let wrong = || Problem::validation("after: must be a cursor that this list has given");
    let decoded = |cursor: &str| BASE64URL_NOPAD.decode(cursor.as_bytes()).ok();
    cursor.map(|cursor| decoded(cursor).and_then(|bytes| place(&bytes)).ok_or_else(wrong)).transpose()
}

/// No name of any list has a control character, and PostgreSQL takes no NUL.
fn name(bytes: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(bytes).ok()?;
    let can_be = (1..=LONGEST_NAME).contains(&name.len()) && !name.chars().any(char::is_control);
    can_be.then(|| name.to_owned())
}

fn number<N: TryFrom<i64>>(bytes: [u8; 8]) -> Option<N> {
    let number = i64::from_be_bytes(bytes);
    N::try_from(number).ok().filter(|_| number >= 0)
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
        assert_eq!(name_place(Some(&name_cursor("ä b"))).unwrap().as_deref(), Some("ä b"));
        assert_eq!(number_place(Some(&number_cursor(7))).unwrap(), Some(7_i32));
        assert_eq!(number_place(Some(&number_cursor(i64::MAX))).unwrap(), Some(i64::MAX));
        let log = number_and_name_cursor(3, "stderr");
        assert_eq!(number_and_name_place(Some(&log)).unwrap(), Some((3, "stderr".to_owned())));
    }

    #[test]
    fn a_cursor_of_one_form_is_refused_by_the_others() {
        let time = DateTime::from_timestamp_micros(1_700_000_000_000_001).unwrap();
        let forms = [
            cursor(time, &Uuid::now_v7()),
            cursor(time, &vec![7_u8; 32]),
            name_cursor("a name as long as a time and a id"),
            number_cursor(7),
            number_and_name_cursor(7, "stdout"),
        ];
        for (at, form) in forms.iter().enumerate() {
            let after = Some(form.as_str());
            let taken = [
                place::<Uuid>(after).is_ok(),
                place::<Vec<u8>>(after).is_ok(),
                name_place(after).is_ok(),
                number_place::<i64>(after).is_ok(),
                number_and_name_place(after).is_ok(),
            ];
            let expected: Vec<bool> = (0..forms.len()).map(|other| other == at).collect();
            assert_eq!(taken[..], expected, "{form}");
        }
    }

    #[test]
    fn no_cursor_names_what_no_row_can_have() {
        assert!(number_place::<i32>(Some(&number_cursor(i64::from(i32::MAX) + 1))).is_err());
        assert!(number_place::<i64>(Some(&number_cursor(-1))).is_err());
        for wrong in ["", "a\0", "a\n", &"x".repeat(LONGEST_NAME + 1)] {
            assert!(name_place(Some(&name_cursor(wrong))).is_err(), "{wrong:?}");
        }
        assert!(name_place(Some(&encode(&[&[NAME], &[0xff]]))).is_err());
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
