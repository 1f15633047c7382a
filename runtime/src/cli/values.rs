//! Values that several commands take: labels, times, JSON texts. They are read here, so that a mistake is told beside its flag;
//! what they may say is for the server to judge.

use std::io::Read;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;

use super::failure::Failure;
use super::settings;

/// A label of a run: `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub name: String,
    pub value: String,
}

impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            // The API's filters end a name at the first colon: such a label would find others.
            Some((name, value)) if !name.is_empty() && !name.contains(':') => {
                Ok(Self { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err("it must be NAME=VALUE, for example shop=berlin".to_owned()),
        }
    }
}

impl Label {
    /// The label as the API filters by it.
    pub(super) fn filter(&self) -> String {
        format!("{}:{}", self.name, self.value)
    }
}

/// A point in time.
pub(super) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let time = DateTime::parse_from_rfc3339(text);
    time.map(|time| time.to_utc()).map_err(|error| format!("it must look like 2026-03-01T09:30:00Z: {error}"))
}

/// The JSON text that a flag gives, or names as @FILE; @- is standard input. It goes as it was written: no number in it changes.
pub(super) async fn json_text(flag: &str, given: &str) -> anyhow::Result<Box<RawValue>> {
    let text = match given.strip_prefix('@') {
        None => given.to_owned(),
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
        Some(file) => String::from_utf8_lossy(&settings::read(file.as_ref()).await?).into_owned(),
    };
    let wrong = |error| Failure::Usage(format!("{flag} is not JSON ({error}); a file is given as @FILE"));
    Ok(serde_json::from_str(&text).map_err(wrong)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_json_text_goes_as_it_was_written() {
        let number = r#"{"n": 9007199254740993.10}"#;
        assert_eq!(json_text("--input", number).await.unwrap().get(), number);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("input.json");
        std::fs::write(&file, "[1]\n").unwrap();
        assert_eq!(json_text("--input", &format!("@{}", file.display())).await.unwrap().get(), "[1]");
        assert!(json_text("--input", "@/no/such/file").await.is_err());
        let error = json_text("--payload", "{").await.unwrap_err().to_string();
        assert!(error.starts_with("--payload is not JSON"), "{error}");
    }

    #[test]
    fn a_label_is_a_name_and_a_value() {
        let label: Label = "shop=a=b:c".parse().unwrap();
        assert_eq!((label.name.as_str(), label.value.as_str()), ("shop", "a=b:c"));
        assert_eq!(label.filter(), "shop:a=b:c");
        assert_eq!("shop=".parse::<Label>().unwrap().filter(), "shop:");
        for wrong in ["", "shop", "=berlin", "a:b=c"] {
            assert!(wrong.parse::<Label>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_has_a_date_and_an_offset() {
        assert_eq!(instant("2026-03-01T10:30:00+01:00").unwrap(), instant("2026-03-01T09:30:00Z").unwrap());
        for wrong in ["", "tomorrow", "2026-03-01", "2026-03-01T10:30:00"] {
            assert!(instant(wrong).unwrap_err().contains("2026-03-01T09:30:00Z"), "{wrong}");
        }
    }
}
