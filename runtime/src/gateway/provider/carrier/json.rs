//! Edits of one member of a JSON text. All other text stays as it was written: numbers, escapes, order and spacing.
//!
//! Works level by level: of each object on the way only the extents of its members are read, never their meaning.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// One member of an object, with where it stands in the object's text.
pub struct Member {
    pub name: String,
    /// Where its name begins.
    start: usize,
    pub value: Range<usize>,
}

/// The names that a JSON pointer leads along. At least one: the whole text is not a member.
pub fn steps(pointer: &str) -> Result<Vec<String>, String> {
    let malformed = || format!("`{pointer}` is not a JSON pointer to a member, such as `/payment/key`");
    let names = pointer.strip_prefix('/').ok_or_else(malformed)?.split('/');
    names.map(|name| unescaped(name).ok_or_else(malformed)).collect()
}

fn unescaped(name: &str) -> Option<String> {
    let escapes = name.split('~').skip(1);
    let known = escapes.clone().all(|rest| rest.starts_with(['0', '1']));
    known.then(|| name.replace("~1", "/").replace("~0", "~"))
}

/// A JSON text for a text.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The value at the end of the way. Of two members of one name the last counts, as most readers have it.
pub fn read(body: &[u8], steps: &[String]) -> Option<String> {
    let mut text = std::str::from_utf8(body).ok()?;
    for name in steps {
        let found = members(text)?.into_iter().rfind(|member| member.name == *name)?;
        text = &text[found.value];
    }
    if text == "null" { None } else { Some(serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())) }
}

/// With this text at the end of the way, in the place of the first member of its name, else as the last.
pub fn set(body: &[u8], steps: &[String], value: &str) -> Result<Vec<u8>, String> {
    Ok(set_in(text_of(body)?, steps, &quoted(value))?.into_bytes())
}

/// Without the member at the end of the way, and without the objects on the way that are empty then: the very ones that
/// [`set`] makes where they are missing.
pub fn unset(body: &[u8], steps: &[String]) -> Result<Vec<u8>, String> {
    Ok(unset_in(text_of(body)?, steps)?.into_bytes())
}

pub fn text_of(body: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(body).map_err(|_| NOT_AN_OBJECT.to_owned())
}

pub const NOT_AN_OBJECT: &str = "the body is not a JSON object, but the provider's profile puts the key into one";

fn set_in(object: &str, steps: &[String], value: &str) -> Result<String, String> {
    let [name, rest @ ..] = steps else { return Ok(value.to_owned()) };
    let members = members(object).ok_or(NOT_AN_OBJECT)?;
    let Some(found) = the_one(&members, name, rest)? else {
        return Ok(with_member(object, &members, name, &nested(rest, value)));
    };
    let mut edits = vec![(members[found].value.clone(), member_value(object, &members[found], rest, value)?)];
    let doubles = (found + 1..members.len()).filter(|i| members[*i].name == *name);
    edits.extend(doubles.map(|i| (members[i - 1].value.end..members[i].value.end, String::new())));
    Ok(spliced(object, edits))
}

fn member_value(object: &str, member: &Member, rest: &[String], value: &str) -> Result<String, String> {
    match &object[member.value.clone()] {
        _ if rest.is_empty() => Ok(value.to_owned()),
        "null" => Ok(nested(rest, value)),
        old => set_in(old, rest, value),
    }
}

fn unset_in(object: &str, steps: &[String]) -> Result<String, String> {
    let [name, rest @ ..] = steps else { return Ok(object.to_owned()) };
    let members = members(object).ok_or(NOT_AN_OBJECT)?;
    let Some(found) = the_one(&members, name, rest)? else { return Ok(object.to_owned()) };
    let old = &object[members[found].value.clone()];
    if !rest.is_empty() && old != "null" {
        let new = unset_in(old, rest)?;
        if self::members(&new).is_some_and(|members| !members.is_empty()) {
            return Ok(spliced(object, vec![(members[found].value.clone(), new)]));
        }
    }
    Ok(without(object, &members, name))
}

/// The place of the first member of a name. On the way to the key there may be only one: which of two the provider
/// reads cannot be known.
fn the_one(members: &[Member], name: &str, rest: &[String]) -> Result<Option<usize>, String> {
    let mut found = (0..members.len()).filter(|i| members[*i].name == *name);
    let first = found.next();
    if !rest.is_empty() && found.next().is_some() {
        return Err(format!("the JSON body has two members `{name}` in one object: send one"));
    }
    Ok(first)
}

/// Takes all members of a name out, each with the comma that it no longer needs.
fn without(object: &str, members: &[Member], name: &str) -> String {
    let kept = members.iter().position(|member| member.name != *name);
    let leading = match kept {
        Some(0) => None,
        Some(first) => Some(members[0].start..members[first].start),
        None => members.first().zip(members.last()).map(|(first, last)| first.start..last.value.end),
    };
    let later = (kept.unwrap_or(members.len())..members.len()).filter(|i| members[*i].name == *name);
    let later = later.map(|i| members[i - 1].value.end..members[i].value.end);
    spliced(object, leading.into_iter().chain(later).map(|range| (range, String::new())).collect())
}

fn with_member(object: &str, members: &[Member], name: &str, value: &str) -> String {
    let member = format!("{}:{value}", quoted(name));
    let (at, text) = match members.last() {
        Some(last) => (last.value.end, format!(",{member}")),
        None => (object.find('{').map_or(0, |brace| brace + 1), member),
    };
    spliced(object, vec![(at..at, text)])
}

/// `value` inside an object for each of the names.
fn nested(names: &[String], value: &str) -> String {
    names.iter().rev().fold(value.to_owned(), |inner, name| format!("{{{}:{inner}}}", quoted(name)))
}

/// The text with each range replaced. The ranges are in order and do not overlap.
pub fn spliced(text: &str, edits: Vec<(Range<usize>, String)>) -> String {
    let mut out = String::with_capacity(text.len() + edits.iter().map(|(_, new)| new.len()).sum::<usize>());
    let mut done = 0;
    for (range, new) in edits {
        out.push_str(&text[done..range.start]);
        out.push_str(&new);
        done = range.end;
    }
    out.push_str(&text[done..]);
    out
}

/// The members of an object in their order; `None` for any other text.
pub fn members(text: &str) -> Option<Vec<Member>> {
    let Extents(raw) = serde_json::from_str(text).ok()?;
    let offset = |part: &RawValue| part.get().as_ptr().addr() - text.as_ptr().addr();
    let member = |(name, value): (&RawValue, &RawValue)| {
        let start = offset(value);
        let known = Member {
            name: serde_json::from_str(name.get()).ok()?,
            start: offset(name),
            value: start..start + value.get().len(),
        };
        Some(known)
    };
    raw.into_iter().map(member).collect()
}

/// An object's members as pieces of the text that it was read from.
struct Extents<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Extents<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ExtentsVisitor)
    }
}

struct ExtentsVisitor;

impl<'de> Visitor<'de> for ExtentsVisitor {
    type Value = Extents<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Extents(members))
    }
}
