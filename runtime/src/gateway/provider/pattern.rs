//! Patterns of host names, paths and texts, as profiles write them.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde::Deserialize;

/// Labels of a host name: a literal, `*` for any one label, `{region}` for any one label that names the AWS region.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct HostPattern(String);

impl TryFrom<String> for HostPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let label = |label: &str| {
            let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            label == "*" || label == "{region}" || (!label.is_empty() && label.bytes().all(letters))
        };
        // At least two literal labels at the end: a pattern must not cover a whole registry of names.
        let literal_end = text.rsplit('.').take(2).all(|label| !label.contains(['*', '{']));
        if text.split('.').all(label) && literal_end {
            return Ok(Self(text));
        }
        Err(format!(
            "`{text}` is not a host pattern: lower-case labels, `*` or `{{region}}` for one label, the last two literal"
        ))
    }
}

impl HostPattern {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// None when the host does not fit; else the region that the pattern names, if it does.
    pub fn matched(&self, host: &str) -> Option<Option<String>> {
        let host = host.strip_suffix('.').unwrap_or(host);
        let (pattern, labels): (Vec<_>, Vec<_>) = (self.0.split('.').collect(), host.split('.').collect());
        if pattern.len() != labels.len() {
            return None;
        }
        let mut region = None;
        for (pattern, label) in pattern.iter().zip(labels) {
            match *pattern {
                "*" => {}
                "{region}" => region = Some(label.to_owned()),
                literal if literal == label => {}
                _ => return None,
            }
        }
        Some(region)
    }
}

/// Segments of a path: a literal, `*` for any one, `{name}` for any one that is captured, `**` at the end for any rest.
/// A literal may have a custom verb, as in `{name}:cancel`.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct PathPattern(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Any,
    Capture(String, String),
    Rest,
}

impl TryFrom<String> for PathPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}` is not a path pattern: {why}");
        let inner = text.strip_prefix('/').ok_or_else(|| wrong("it begins with `/`"))?;
        let segments: Vec<Segment> = inner.split('/').map(segment).collect();
        let rest = segments.iter().position(|segment| *segment == Segment::Rest);
        if rest.is_some_and(|at| at + 1 < segments.len()) {
            return Err(wrong("`**` stands at the end"));
        }
        Ok(Self(segments))
    }
}

fn segment(text: &str) -> Segment {
    match text {
        "*" => Segment::Any,
        "**" => Segment::Rest,
        _ => match text.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((name, after)) => Segment::Capture(name.to_owned(), after.to_owned()),
            None => Segment::Literal(text.to_owned()),
        },
    }
}

impl PathPattern {
    /// What the path captures, when it fits.
    pub fn matched(&self, path: &str) -> Option<BTreeMap<String, String>> {
        let mut captures = BTreeMap::new();
        let mut segments = path.strip_prefix('/').unwrap_or(path).split('/');
        for pattern in &self.0 {
            if *pattern == Segment::Rest {
                return Some(captures);
            }
            let segment = segments.next()?;
            match pattern {
                Segment::Literal(literal) if literal == segment => {}
                Segment::Any if !segment.is_empty() => {}
                Segment::Capture(name, after) => {
                    let value = segment.strip_suffix(after.as_str()).filter(|value| !value.is_empty())?;
                    // A template encodes what it puts into a URL.
                    captures.insert(name.clone(), percent_decode_str(value).decode_utf8().ok()?.into_owned());
                }
                _ => return None,
            }
        }
        segments.next().is_none().then_some(captures)
    }

    pub fn capture_names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|segment| match segment {
            Segment::Capture(name, _) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// A text with `*` for anything at its beginning or its end.
pub fn text_fits(pattern: &str, text: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        _ if pattern == "*" => true,
        (Some(end), None) => text.ends_with(end),
        (None, Some(start)) => text.starts_with(start),
        (Some(_), Some(_)) => text.contains(pattern.trim_matches('*')),
        (None, None) => text == pattern,
    }
}
