//! JSON texts: when two mean the same, how deep one is, and what a schema makes of one.

use serde_json::Value;
use serde_json::value::RawValue;

use super::parts::{long_strings, pieces, text};
use crate::api::{canonical, depth, input};

/// Deeper texts are compared byte for byte.
const DEPTH_BY_MEANING: usize = 100;

/// Two texts. White space, escapes and the order of members do not count; whatever else differs does.
pub fn canonical_json(input: &[u8]) {
    let [one, other] = pieces(input);
    let (Some(a), by_meaning) = (json(one), is_by_meaning(one)) else {
        assert!(!is_by_meaning(one), "what is not JSON is compared byte for byte");
        return;
    };
    let plain = !text(one).contains("\\u") && deepest(a.get()) <= DEPTH_BY_MEANING;
    assert!(by_meaning || !plain, "JSON is compared by its meaning");
    if !by_meaning {
        return;
    }
    let digest = fed(one);
    assert_eq!(fed(respaced(a.get()).as_bytes()), digest, "white space counts");
    let Ok(value) = serde_json::from_str(a.get()) else { return };
    // A string with half of a surrogate pair is no value to Rust: it counts as it is written.
    assert_eq!(fed(escaped(a.get()).as_bytes()), digest, "escapes count");
    if let Value::Object(members) = &value {
        assert_eq!(fed(turned(a.get(), members.len()).as_bytes()), digest, "the order of members counts");
        let with = with_member(a.get(), members.is_empty());
        let but = |body: &[u8]| fed_without(body, Some("\u{1}"));
        assert_eq!(but(with.as_bytes()), but(one), "a member counts that must not");
    }
    if let Some(b) = json(other).filter(|_| is_by_meaning(other))
        && let Ok(b) = serde_json::from_str::<Value>(b.get())
    {
        assert!(digest != fed(other) || value == b, "what means something else is taken for the same");
    }
}

/// A JSON text. The levels that are counted are those that it has, and what is taken can be read.
pub fn json_depth(input: &[u8]) {
    let is_taken = |max| depth::check(input, max).is_ok();
    for max in [0, 1, 7, 127] {
        assert!(!is_taken(max) || is_taken(max + 1), "a higher limit takes less");
    }
    let Some(raw) = json(input) else { return };
    let levels = deepest(raw.get());
    assert!(is_taken(levels) && (levels == 0 || !is_taken(levels - 1)), "the text has {levels} levels");
    if is_taken(DEPTH_BY_MEANING) {
        let read = serde_json::from_str::<Value>(raw.get());
        assert!(
            read.is_ok_and(|value| levels_of(&value) == levels) || raw.get().contains("\\u") || has_large(raw.get())
        );
    }
}

/// A schema and an input. What is taken is light, and a refusal says nothing of the input.
pub fn input_schema(input: &[u8]) {
    let [schema, given] = pieces(input).map(text);
    let Ok(read) = serde_json::from_str::<Value>(schema) else { return };
    if input::check_schema(&read).is_err() {
        return;
    }
    assert!(input::weight::parts(&read, input::MAX_PARTS).is_ok(), "a heavy schema is taken");
    let Err(problem) = input::check_now(&read, given) else {
        assert!(json(given.as_bytes()).is_some(), "what is not JSON fits a schema");
        return;
    };
    let words = problem.refusal().unwrap_or_default();
    assert!(!words.is_empty(), "a schema that was taken cannot be used");
    for string in serde_json::from_str::<Value>(given).iter().flat_map(long_strings) {
        let known = schema.contains(string) || "input: ".contains(string) || is_word(string, words);
        assert!(known || !words.contains(string), "a refusal shows the input");
    }
}

/// It would be there whatever the input is: a word that the library uses.
fn is_word(string: &str, words: &str) -> bool {
    string.chars().all(|c| c.is_ascii_lowercase() || c == ' ') && words.contains(string)
}

fn fed(body: &[u8]) -> blake3::Hash {
    fed_without(body, None)
}

fn fed_without(body: &[u8], except: Option<&str>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    canonical::feed(&mut hasher, body, except);
    hasher.finalize()
}

fn is_by_meaning(body: &[u8]) -> bool {
    fed(body) == fed(&[body, b" "].concat())
}

fn json(bytes: &[u8]) -> Option<Box<RawValue>> {
    serde_json::from_slice(bytes).ok()
}

/// Levels of arrays and objects, without a stack of that depth.
fn deepest(json: &str) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for (_, byte) in outside_strings(json) {
        match byte {
            '[' | '{' => now += 1,
            ']' | '}' => now -= 1,
            _ => {}
        }
        most = most.max(now);
    }
    most
}

fn levels_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels_of).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(levels_of).max().unwrap_or(0),
        _ => 0,
    }
}

/// A number that no float holds is no value to serde_json.
fn has_large(json: &str) -> bool {
    json.contains(['e', 'E']) || json.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 300)
}

/// The characters of a valid JSON text that are in no string, with their places.
fn outside_strings(json: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut in_string, mut escaped) = (false, false);
    json.char_indices().filter(move |(_, c)| {
        let was = in_string;
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
        !was && !in_string
    })
}

/// With other white space between all parts.
fn respaced(json: &str) -> String {
    let mut out = String::from("\n");
    let mut done = 0;
    for (at, c) in outside_strings(json) {
        if matches!(c, '[' | ']' | '{' | '}' | ',' | ':') {
            out.push_str(&json[done..at]);
            out.extend([' ', c, '\t']);
            done = at + 1;
        }
    }
    out + &json[done..] + "\r\n"
}

/// With every plain letter of every string written as an escape.
fn escaped(json: &str) -> String {
    let mut out = String::new();
    let (mut chars, mut in_string) = (json.chars(), false);
    while let Some(c) = chars.next() {
        if in_string && c.is_ascii_alphabetic() {
            out.push_str(&format!("\\u{:04X}", u32::from(c)));
            continue;
        }
        out.push(c);
        if c == '"' {
            in_string = !in_string;
        }
        if c == '\\' {
            let kind = chars.next();
            out.extend(kind);
            out.extend(chars.by_ref().take(if kind == Some('u') { 4 } else { 0 }));
        }
    }
    out
}

/// With the members of the outermost object in the other order, where each has a name of its own.
fn turned(json: &str, names: usize) -> String {
    let members = members(json);
    if members.len() != names {
        return json.to_owned();
    }
    let turned: Vec<&str> = members.into_iter().rev().collect();
    format!("{{{}}}", turned.join(","))
}

/// The texts of the members of an object.
fn members(json: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0_usize, 0, Vec::new());
    for (at, c) in outside_strings(json) {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        match (depth, c) {
            (1, '{') => start = at + 1,
            (1, ',') | (0, '}') => {
                found.push(json[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.retain(|member| !member.is_empty());
    found
}

/// With one more member, whose name no other test uses.
fn with_member(json: &str, is_empty: bool) -> String {
    let comma = if is_empty { "" } else { "," };
    json.replacen('{', &format!("{{\"\\u0001\":[1]{comma}"), 1)
}
