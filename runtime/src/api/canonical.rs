//! What makes two request bodies the same. JSON texts are compared by their meaning: the order of members, white space and
//! escapes do not matter; numbers are compared as they are written, so that none is rounded into another. Anything else is
//! compared byte for byte.
//!
//! Pure; it must never judge whether a body is right.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// What may stand around a JSON text.
const WHITE_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// A text that is nested deeper is compared byte for byte.
const MAX_DEPTH: usize = 128;

/// Feeds a body to a digest. `except` names a member of the outermost object that does not count.
pub fn feed(hasher: &mut blake3::Hasher, body: &[u8], except: Option<&str>) {
    let mut json = Vec::with_capacity(body.len());
    let text = std::str::from_utf8(body).ok();
    if text.and_then(|text| value(&mut json, text.trim_matches(WHITE_SPACE), 0, except)).is_some() {
        hasher.update(b"json").update(&json);
    } else {
        hasher.update(b"raw").update(body);
    }
}

/// Writes the canonical form of one JSON text: every part behind its kind and its length.
fn value(out: &mut Vec<u8>, text: &str, depth: usize, except: Option<&str>) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    match text.as_bytes().first()? {
        b'{' => {
            let mut members = serde_json::from_str::<Members<'_>>(text).ok()?.0;
            members.retain(|(name, _)| Some(&**name) != except);
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            part(out, b'{', &(members.len() as u64).to_le_bytes());
            for (name, member) in members {
                part(out, b'"', name.as_bytes());
                value(out, member.get(), depth + 1, None)?;
            }
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            part(out, b'[', &(items.len() as u64).to_le_bytes());
            for item in items {
                value(out, item.get(), depth + 1, None)?;
            }
        }
        b'"' => match serde_json::from_str::<String>(text) {
            Ok(string) => part(out, b'"', string.as_bytes()),
            // Half of a surrogate pair: JSON that no string of ours can hold.
            Err(_) => part(out, b'\'', serde_json::from_str::<&RawValue>(text).ok()?.get().as_bytes()),
        },
        _ => part(out, b'0', serde_json::from_str::<&RawValue>(text).ok()?.get().as_bytes()),
    }
    Some(())
}

fn part(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// All members of an object in their order, also those of one name.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    members.push((name.0, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(All)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(body: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        feed(&mut hasher, body.as_bytes(), Some("key"));
        hasher.finalize()
    }

    /// F-A12.
    #[test]
    fn what_means_the_same_is_the_same() {
        let same = [
            r#"{"a":[1,{"b":null}],"c":"é/"}"#,
            r#" { "c" : "\u00e9\/" , "a" : [ 1 , { "b" : null } ] } "#,
            "{\"key\":\"x\",\n\"a\":[1,{\"b\":null}],\"c\":\"\u{e9}/\"}",
            r#"{"\u0061":[1,{"b":null}],"c":"é/","key":7}"#,
        ];
        for text in same {
            assert_eq!(digest(text), digest(same[0]), "{text}");
        }
    }

    /// F-A12.
    #[test]
    fn what_means_something_else_is_not() {
        let all = [
            "",
            "null",
            "{}",
            "[]",
            "0",
            "\"\"",
            "[[]]",
            "[null]",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1.0}"#,
            r#"{"a":1e0}"#,
            r#"{"a":null}"#,
            r#"{"a":9007199254740992}"#,
            r#"{"a":9007199254740993}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[2,1]}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":2,"a":1}"#,
            r#"{"b":{"key":1}}"#,
            r#"{"b":{}}"#,
            r#"{"a":1"#,
            r#"{"a":1}}"#,
            r#"["\ud800"]"#,
            r#"["\ud801"]"#,
            r#"["a","b"]"#,
            r#"["ab",""]"#,
        ];
        for (at, one) in all.iter().enumerate() {
            for other in &all[..at] {
                assert_ne!(digest(one), digest(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn what_only_looks_like_json_is_compared_as_it_is() {
        for space in ["\u{c}", "\u{a0}", "\u{2028}", "\u{feff}"] {
            assert_ne!(digest(&format!("{space}[]")), digest("[]"), "{}", space.escape_unicode());
        }
    }

    #[test]
    fn a_text_without_end_is_compared_as_it_is() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_ne!(digest(&deep), digest(&format!(" {deep}")));
    }
}
