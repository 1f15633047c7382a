//! Looks for canaries in whatever was written, in every form that a program or a provider may have given them.

use std::collections::BTreeSet;
use std::path::Path;

use aho_corasick::AhoCorasick;
use data_encoding::{BASE64, BASE64URL, HEXLOWER, HEXUPPER};

/// A value that must be nowhere.
#[derive(Clone, Debug)]
pub struct Canary {
    pub what: &'static str,
    pub value: String,
}

impl Canary {
    pub fn new(what: &'static str, value: impl Into<String>) -> Self {
        Self { what, value: value.into() }
    }

    /// The value as it is, in base64 at each place among other bytes, in hexadecimal, in a URL, in JSON, and that in a dump.
    pub fn forms(&self) -> Vec<String> {
        let value = self.value.as_str();
        let json = serde_json::to_string(value).unwrap();
        let json = json.trim_matches('"').to_owned();
        let percent = |kept: &str| value.bytes().map(|byte| percent(byte, kept)).collect::<String>();
        let slashes = json.replace('/', "\\/");
        let mut forms =
            vec![value.to_owned(), slashes.replace('\\', "\\\\"), slashes, json.replace('\\', "\\\\"), json];
        for all in [percent(""), percent("-._~")] {
            forms.extend([all.to_lowercase(), all]);
        }
        forms.extend([HEXLOWER.encode(value.as_bytes()), HEXUPPER.encode(value.as_bytes())]);
        for offset in 0..3 {
            let padded = [&vec![0; offset][..], value.as_bytes()].concat();
            // The characters that do not depend on what stands before and behind.
            let (first, last) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
            forms.extend([BASE64.encode(&padded), BASE64URL.encode(&padded)].map(|text| text[first..last].to_owned()));
        }
        forms
    }
}

/// Some encode all but letters and digits, and others nothing that may stand in a URL as it is (RFC 3986, section 2.3).
fn percent(byte: u8, kept: &str) -> String {
    if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

/// All forms of many canaries, looked for at once.
#[derive(Debug)]
pub struct Search {
    forms: AhoCorasick,
    /// What each form is of.
    of: Vec<&'static str>,
}

impl Search {
    pub fn of(canaries: &[Canary]) -> Self {
        let all: Vec<_> = canaries.iter().flat_map(|it| it.forms().into_iter().map(|form| (it.what, form))).collect();
        let forms = AhoCorasick::new(all.iter().map(|(_, form)| form)).unwrap();
        Self { forms, of: all.iter().map(|(what, _)| *what).collect() }
    }

    /// What was found there, in words that do not show it.
    pub fn found(&self, place: &str, bytes: &[u8]) -> Vec<String> {
        let found: BTreeSet<_> = self.forms.find_overlapping_iter(bytes).map(|it| self.of[it.pattern()]).collect();
        found.into_iter().map(|what| format!("{what} in {place}")).collect()
    }

    /// What was found in the files below a directory.
    pub fn found_below(&self, dir: &Path) -> Vec<String> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => all.extend(self.found_below(&path)),
                false => all.extend(self.found(&path.display().to_string(), &std::fs::read(&path).unwrap())),
            }
        }
        all
    }
}

#[test]
fn every_form_is_found_wherever_it_stands() {
    let canary = Canary::new("canary", "canary-\"5f0c+/=\\1d77e3");
    let search = Search::of(std::slice::from_ref(&canary));
    let value = canary.value.as_bytes();
    for before in ["", "x", "xy", "xyz"] {
        for after in ["", "x", "xy"] {
            let whole = [before.as_bytes(), value, after.as_bytes()].concat();
            let shown = [BASE64.encode(&whole), BASE64URL.encode(&whole), HEXLOWER.encode(&whole)];
            for text in shown {
                assert_eq!(search.found("here", text.as_bytes()), ["canary in here"], "{text}");
            }
        }
    }
    let json = serde_json::json!({ "a": canary.value }).to_string();
    let in_url = "canary-%225f0c%2B%2F%3D%5C1d77e3".to_owned();
    for text in [canary.value.clone(), in_url, json.clone(), json.replace('/', "\\/"), json.replace('\\', "\\\\")] {
        assert_eq!(search.found("here", text.as_bytes()).len(), 1, "{text}");
    }
    assert!(search.found("here", b"canary-5f0c").is_empty());
}
