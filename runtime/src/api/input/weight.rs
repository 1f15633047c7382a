//! How much work a JSON Schema means: the number of its parts once every reference is replaced by what it refers to. A library
//! walks references anew each time, so that a few lines can mean more steps than there is time.
//!
//! Pure; it must never judge anything else about a schema.

use std::collections::HashMap;

use serde_json::Value;

/// What refers to places that are known only while an input is checked.
const DYNAMIC: [&str; 2] = ["$dynamicRef", "$recursiveRef"];

/// References behind one another.
const MAX_NESTING: usize = 64;

/// The number of parts, at most `most`; else why the schema cannot be used.
pub fn parts(schema: &Value, most: u64) -> Result<u64, String> {
    let mut walk = Walk { whole: schema, known: HashMap::new(), open: Vec::new() };
    let parts = walk.count(schema)?;
    if parts > most {
        Err(format!("must not have more than {most} parts with its references written out"))
    } else {
        Ok(parts)
    }
}

struct Walk<'a> {
    whole: &'a Value,
    known: HashMap<&'a str, u64>,
    open: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn count(&mut self, node: &'a Value) -> Result<u64, String> {
        let mut sum = 1_u64;
        match node {
            Value::Array(items) => {
                for item in items {
                    sum = sum.saturating_add(self.count(item)?);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    if DYNAMIC.contains(&name.as_str()) {
                        return Err(format!("must not have `{name}`"));
                    }
                    let part = match (name.as_str(), member) {
                        ("$ref", Value::String(target)) => self.referred(target)?,
                        _ => self.count(member)?,
                    };
                    sum = sum.saturating_add(part);
                }
            }
            _ => {}
        }
        Ok(sum)
    }

    fn referred(&mut self, target: &'a str) -> Result<u64, String> {
        if let Some(parts) = self.known.get(target) {
            return Ok(*parts);
        }
        if self.open.contains(&target) {
            return Err(format!("`{target}` refers to itself: such schemas are not taken"));
        }
        if self.open.len() >= MAX_NESTING {
            return Err(format!("references must not lead on from one to the next more than {MAX_NESTING} times"));
        }
        let place = target.strip_prefix('#').filter(|place| place.is_empty() || place.starts_with('/'));
        let whole = self.whole;
        let found = place.and_then(|place| whole.pointer(place));
        let found =
            found.ok_or_else(|| format!("`$ref`: `{target}` must be a place of this schema, as `#/$defs/name`"))?;
        self.open.push(target);
        let parts = self.count(found)?;
        self.open.pop();
        self.known.insert(target, parts);
        Ok(parts)
    }
}
