//! Times as answers show them: RFC 3339, UTC, to the microsecond.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, format = DateTime)]
pub struct Time(String);

impl From<DateTime<Utc>> for Time {
    fn from(time: DateTime<Utc>) -> Self {
        Self(time.to_rfc3339_opts(SecondsFormat::Micros, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_utc_to_the_microsecond() {
        let time = DateTime::from_timestamp_micros(1_700_000_000_000_001).unwrap();
        assert_eq!(Time::from(time).0, "2023-11-14T22:13:20.000001Z");
    }
}
