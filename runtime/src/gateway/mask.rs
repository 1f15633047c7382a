//! Masks a credential wherever a provider reflects it: in headers and in the body, as it is, percent-encoded, escaped as
//! JSON, in hexadecimal, and inside base64 at any offset. What is masked is masked for the guest, the ledger and the logs alike.

use std::collections::BTreeSet;
use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use bytes::Bytes;
use data_encoding::{BASE64, BASE64URL, HEXLOWER, HEXUPPER};
use http::{HeaderMap, HeaderValue};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands in the place of a credential.
const MASK: &[u8] = b"[masked]";

/// Shorter parts of a credential are not masked: they would be found everywhere.
const MIN_PART_BYTES: usize = 8;

/// Finds one credential in whatever form it is written.
pub struct Mask(Option<AhoCorasick>);

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mask")
    }
}

impl Mask {
    pub fn new(secret: &str) -> Self {
        let mut forms = BTreeSet::new();
        for part in parts(secret) {
            forms.extend(forms_of(part.as_bytes()));
        }
        let found = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(forms);
        Self(found.ok())
    }

    /// The headers with every trace of the credential masked.
    pub fn headers(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            let masked = self.replaced(value.as_bytes()).and_then(|bytes| HeaderValue::from_bytes(&bytes).ok());
            if let Some(masked) = masked {
                *value = masked;
            }
        }
    }

    pub fn body(&self, body: Bytes) -> Bytes {
        self.replaced(&body).map_or(body, Bytes::from)
    }

    /// None when nothing is to be masked.
    fn replaced(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let finder = self.0.as_ref()?;
        finder.find(bytes)?;
        Some(finder.replace_all_bytes(bytes, &vec![MASK; finder.patterns_len()]))
    }
}

/// A credential and the parts that are secret by themselves: both sides of `user:password`, the members of a JSON object.
fn parts(secret: &str) -> Vec<String> {
    let mut parts = vec![secret.to_owned()];
    if let Ok(serde_json::Value::Object(members)) = serde_json::from_str(secret) {
        parts.extend(members.values().filter_map(|value| value.as_str().map(str::to_owned)));
    } else if let Some((user, password)) = secret.split_once(':') {
        parts.extend([user.to_owned(), password.to_owned()]);
    }
    parts.retain(|part| part.len() >= MIN_PART_BYTES);
    parts
}

fn forms_of(part: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(part);
    let quoted = serde_json::Value::String(text.to_string()).to_string();
    let percent = utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string();
    let form: String = url::form_urlencoded::byte_serialize(part).collect();
    let slashes = quoted[1..quoted.len() - 1].replace('/', "\\/");
    let mut forms = vec![
        part.to_vec(),
        quoted.as_bytes()[1..quoted.len() - 1].to_vec(),
        slashes.into_bytes(),
        percent.to_lowercase().into_bytes(),
        percent.into_bytes(),
        form.into_bytes(),
        HEXLOWER.encode(part).into_bytes(),
        HEXUPPER.encode(part).into_bytes(),
    ];
    for offset in 0..3 {
        forms.extend(inside_base64(part, offset));
    }
    forms
}

/// The characters that a part always has inside base64 when `offset` bytes (mod 3) come before it. Those at its edges
/// depend on its neighbours and are left out.
fn inside_base64(part: &[u8], offset: usize) -> Vec<Vec<u8>> {
    let padded = [&vec![0; offset][..], part].concat();
    let first = (offset * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    let cut = |text: String| text.as_bytes()[first..last].to_vec();
    vec![cut(BASE64.encode(&padded)), cut(BASE64URL.encode(&padded))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(secret: &str, text: &str) -> String {
        String::from_utf8(Mask::new(secret).body(Bytes::from(text.to_owned())).to_vec()).unwrap()
    }

    /// F-H04.
    #[test]
    fn a_secret_is_masked_in_every_form_and_at_every_offset_of_base64() {
        let secret = "sk_live_+/=\"4eC39H";
        for before in ["", "x", "xy", "xyz", "user:"] {
            for after in ["", "x", "xy", "&suffix"] {
                let whole = format!("{before}{secret}{after}");
                for encoded in [BASE64.encode(whole.as_bytes()), BASE64URL.encode(whole.as_bytes())] {
                    let shown = masked(secret, &encoded);
                    assert!(shown.contains("[masked]"), "{whole}: {shown}");
                    let longest = shown.split("[masked]").map(str::len).max().unwrap();
                    assert!(longest <= encoded.len() - secret.len(), "{whole}: {shown}");
                }
            }
        }
        for form in [
            secret.to_owned(),
            serde_json::to_string(secret).unwrap(),
            utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
            HEXLOWER.encode(secret.as_bytes()),
        ] {
            assert!(!masked(secret, &form).contains(&form), "{form}");
        }
    }

    #[test]
    fn the_parts_of_a_pair_and_of_a_json_secret_are_masked_too() {
        assert_eq!(masked("AC12345678:token-of-twilio", "token-of-twilio"), "[masked]");
        assert_eq!(masked(r#"{"secret_access_key":"wJalrXUtnFEMI"}"#, "k=wJalrXUtnFEMI"), "k=[masked]");
    }

    #[test]
    fn what_is_no_secret_stays() {
        assert_eq!(masked("sk_live_4eC39H", "ordinary text"), "ordinary text");
        assert_eq!(masked("short", "short"), "short");
    }
}
