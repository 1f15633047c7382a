//! Where two texts differ, short enough to be read: what stands around the first byte that is not the same.

use serde::Serialize;

/// Characters before the difference, and after it.
const BEFORE: usize = 24;
const AFTER: usize = 40;

/// The pieces of two texts around their first difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Differ {
    /// The place of the first differing byte.
    pub at: usize,
    pub one: String,
    pub other: String,
}

impl Differ {
    /// None when the texts are equal.
    pub fn of(one: &str, other: &str) -> Option<Self> {
        if one == other {
            return None;
        }
        let at = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        Some(Self { at, one: piece(one, at), other: piece(other, at) })
    }
}

fn piece(text: &str, at: usize) -> String {
    let mut from = at.saturating_sub(BEFORE).min(text.len());
    while !text.is_char_boundary(from) {
        from -= 1;
    }
    let shown: String =
        text[from..].chars().take(BEFORE + AFTER).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    let begins = if from > 0 { "…" } else { "" };
    let ends = if text[from..].chars().count() > BEFORE + AFTER { "…" } else { "" };
    format!("{begins}{shown}{ends}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown_with_what_stands_around_it() {
        assert_eq!(Differ::of("same", "same"), None);
        let found = Differ::of(r#"{"at":1,"b":2}"#, r#"{"at":3,"b":2}"#).unwrap();
        assert_eq!((found.at, found.one.as_str()), (6, r#"{"at":1,"b":2}"#));
        let long = "x".repeat(500);
        let found = Differ::of(&format!("{long}1"), &format!("{long}2{long}")).unwrap();
        assert!(found.one.starts_with('…') && found.other.ends_with('…') && found.other.len() < 100, "{found:?}");
        assert!(Differ::of("äb", "äc").unwrap().one.starts_with('ä'));
        assert_eq!(Differ::of("", "a").unwrap().one, "");
    }
}
