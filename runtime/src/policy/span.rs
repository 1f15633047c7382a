//! Durations as people write them.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration, written with its unit: `500ms`, `30s`, `5m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = |e| serde::de::Error::custom(format!("`{text}` is not a duration such as 500ms, 30s or 5m: {e}"));
        humantime::parse_duration(&text).map(Self).map_err(wrong)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(self.0))
    }
}

pub(super) const LONGEST: Span = Span(Duration::from_secs(30 * 24 * 3600));
const SHORTEST: Span = Span(Duration::from_millis(1));

/// Whether a field of a policy holds a duration that can be waited for.
pub(super) fn within(field: &str, span: Span) -> Result<(), String> {
    if (SHORTEST..=LONGEST).contains(&span) { Ok(()) } else { Err(format!("{field} must be between 1ms and 30days")) }
}
