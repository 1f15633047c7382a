//! JSON pointers (RFC 6901) over JSON texts. What a pointer finds is a piece of the text itself, so that no number, no order of
//! members and no spelling in it changes.

use std::collections::HashMap;

use serde_json::value::RawValue;

/// A pointer that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    text: String,
    steps: Vec<String>,
}

impl Pointer {
    /// Reads a pointer: empty for the whole text, else `/` before each step, `~1` for `/` and `~0` for `~`.
    pub fn read(text: &str) -> Option<Self> {
        let steps = match text.strip_prefix('/') {
            None if text.is_empty() => Vec::new(),
            None => return None,
            Some(rest) => rest.split('/').map(step).collect::<Option<_>>()?,
        };
        Some(Self { text: text.to_owned(), steps })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The value that the pointer leads to. Where a member is there twice, the last one counts.
    pub fn find<'a>(&self, value: &'a RawValue) -> Option<&'a RawValue> {
        self.steps.iter().try_fold(value, |value, step| inside(value, step))
    }
}

fn step(text: &str) -> Option<String> {
    let escapes = text.match_indices('~').all(|(at, _)| matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1')));
    escapes.then(|| text.replace("~1", "/").replace("~0", "~"))
}

fn inside<'a>(value: &'a RawValue, step: &str) -> Option<&'a RawValue> {
    match value.get().as_bytes().first()? {
        b'{' => serde_json::from_str::<HashMap<String, &'a RawValue>>(value.get()).ok()?.remove(step),
        b'[' => {
            let place = index(step)?;
            serde_json::from_str::<Vec<&'a RawValue>>(value.get()).ok()?.get(place).copied()
        }
        _ => None,
    }
}

fn index(step: &str) -> Option<usize> {
    let plain = step == "0" || !step.starts_with('0');
    (plain && step.bytes().all(|c| c.is_ascii_digit())).then(|| step.parse().ok())?
}

/// A value as a text: what a string says; a number, `true` and `false` as they are written. None for anything else.
pub fn text(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok(),
        b'{' | b'[' | b'n' => None,
        _ => Some(value.get().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pointer: &str, json: &str) -> Option<String> {
        let value: &RawValue = serde_json::from_str(json).unwrap();
        Pointer::read(pointer).unwrap().find(value).map(|value| value.get().to_owned())
    }

    /// Those of RFC 6901, section 5.
    #[test]
    fn the_examples_of_the_specification_are_found() {
        let json = r#"{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8}"#;
        assert_eq!(find("", json).as_deref(), Some(json));
        let expected = [
            ("/foo", r#"["bar", "baz"]"#),
            ("/foo/0", r#""bar""#),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ];
        for (pointer, value) in expected {
            assert_eq!(find(pointer, json).as_deref(), Some(value), "{pointer}");
        }
    }

    #[test]
    fn what_is_found_is_the_text_that_was_there() {
        let json = r#" {"a":{ "n" : 9007199254740993, "f":1.0, "e":1E+2, "s":"\u0041", "z":[ 1 ,2 ]} } "#;
        assert_eq!(find("/a/n", json).as_deref(), Some("9007199254740993"));
        assert_eq!(find("/a/f", json).as_deref(), Some("1.0"));
        assert_eq!(find("/a/e", json).as_deref(), Some("1E+2"));
        assert_eq!(find("/a/s", json).as_deref(), Some(r#""\u0041""#));
        assert_eq!(find("/a/z", json).as_deref(), Some("[ 1 ,2 ]"));
        assert_eq!(find("", json).as_deref(), Some(json.trim()));
        assert_eq!(find("/a", r#"{"a": 1, "a": 2}"#).as_deref(), Some("2"));
        assert_eq!(find("/~01", r#"{"~1": 1}"#).as_deref(), Some("1"));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let json = r#"{"a": [1, {"b": null}], "0": 5}"#;
        assert_eq!(find("/a/1/b", json).as_deref(), Some("null"));
        assert_eq!(find("/0", json).as_deref(), Some("5"));
        for pointer in
            ["/b", "/a/2", "/a/-", "/a/01", "/a/+1", "/a/", "/a/1/b/c", "/a/0/0", "/A", "/a/99999999999999999999"]
        {
            assert_eq!(find(pointer, json), None, "{pointer}");
        }
        assert_eq!(find("/a", "[1]"), None);
        assert_eq!(find("/a", "7"), None);
    }

    #[test]
    fn a_deep_text_is_walked_without_a_deep_stack() {
        let deep = format!("{{\"a\":{}{},\"b\":1}}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(find("/b", &deep).as_deref(), Some("1"));
    }

    #[test]
    fn another_form_is_no_pointer() {
        for wrong in ["a", "a/b", "#/a", "/a~", "/~2", "/a/~"] {
            assert!(Pointer::read(wrong).is_none(), "{wrong}");
        }
        assert_eq!(Pointer::read("/a~1b").unwrap().as_str(), "/a~1b");
    }

    #[test]
    fn a_text_is_a_string_a_number_or_a_truth() {
        let of = |json: &str| text(serde_json::from_str(json).unwrap());
        assert_eq!(of(r#""a\u00e4\n""#).as_deref(), Some("aä\n"));
        assert_eq!(of("9007199254740993").as_deref(), Some("9007199254740993"));
        assert_eq!(
            (of("-1.0").as_deref(), of("true").as_deref(), of("false").as_deref()),
            (Some("-1.0"), Some("true"), Some("false"))
        );
        for none in ["null", "{}", "[]", r#"["a"]"#, r#""\ud800""#] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
