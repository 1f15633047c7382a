//! Masks a credential wherever a provider reflects it: in headers and in the body, as it is, percent-encoded, escaped as
//! JSON, in hexadecimal, and inside base64 at any offset. What is masked is masked for the guest, the ledger and the logs alike.

use std::collections::BTreeSet;
use std::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use bytes::Bytes;
use data_encoding::{BASE64, BASE64URL, HEXLOWER, HEXUPPER};
use http::{HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

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
            forms.extend(forms_of(&part));
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

fn forms_of(part: &str) -> Vec<Vec<u8>> {
    let bytes = part.as_bytes();
    let mut forms = vec![part.to_owned(), HEXLOWER.encode(bytes), HEXUPPER.encode(bytes)];
    forms.extend(in_json(part));
    forms.extend(in_urls(part));
    let mut forms: Vec<Vec<u8>> = forms.into_iter().map(String::into_bytes).collect();
    for offset in 0..3 {
        forms.extend(inside_base64(bytes, offset));
    }
    forms
}

/// What RFC 3986 leaves as it is in any part of a URL.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What `encodeURIComponent` leaves as it is besides.
const COMPONENT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');

/// Percent-encoded as libraries do it: they differ in what they leave as it is, and in the case of the digits.
fn in_urls(part: &str) -> Vec<String> {
    let mut forms: Vec<String> =
        [NON_ALPHANUMERIC, UNRESERVED, COMPONENT].map(|set| utf8_percent_encode(part, set).to_string()).into();
    forms.push(url::form_urlencoded::byte_serialize(part.as_bytes()).collect());
    let lower: Vec<String> = forms.iter().map(|form| with_lower_digits(form)).collect();
    forms.extend(lower);
    forms
}

/// Only the two digits behind each `%` change: a letter of the credential is another one in lower case.
fn with_lower_digits(encoded: &str) -> String {
    let (first, rest) = encoded.split_once('%').map_or((encoded, None), |(first, rest)| (first, Some(rest)));
    let escape = |escape: &str| {
        let (digits, text) = escape.split_at_checked(2).unwrap_or((escape, ""));
        format!("%{}{text}", digits.to_ascii_lowercase())
    };
    let rest = rest.into_iter().flat_map(|rest| rest.split('%'));
    rest.fold(first.to_owned(), |encoded, each| encoded + &escape(each))
}

/// The inside of a JSON string as libraries write it: they differ in what they escape though they need not.
fn in_json(part: &str) -> Vec<String> {
    let foreign = |c: char| !c.is_ascii();
    let markup = |c: char| "<>&".contains(c);
    let careful = |c: char| foreign(c) || "\"&'+<>`".contains(c);
    let mut forms = vec![
        as_json(part, |_| false),
        as_json(part, markup),
        as_json(part, foreign),
        as_json(part, |c| foreign(c) || markup(c)),
        as_json(part, careful),
    ];
    let slashes: Vec<String> = forms.iter().map(|form| form.replace('/', "\\/")).collect();
    forms.extend(slashes);
    let upper: Vec<String> = forms.iter().map(|form| with_upper_digits(form)).collect();
    forms.extend(upper);
    forms
}

/// `as_unit` chooses the characters that are written as UTF-16 units without need.
fn as_json(part: &str, as_unit: impl Fn(char) -> bool) -> String {
    let mut form = String::new();
    for c in part.chars() {
        if as_unit(c) {
            let units = c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
            form.push_str(&units);
        } else {
            let quoted = serde_json::Value::from(c.to_string()).to_string();
            form.push_str(&quoted[1..quoted.len() - 1]);
        }
    }
    form
}

/// A backslash of the credential itself is doubled: no `\\u` is taken for an escape.
fn with_upper_digits(escaped: &str) -> String {
    let mut form = String::with_capacity(escaped.len());
    let mut chars = escaped.chars();
    while let Some(c) = chars.next() {
        form.push(c);
        let kind = if c == '\\' { chars.next() } else { None };
        form.extend(kind);
        if kind == Some('u') {
            form.extend(chars.by_ref().take(4).map(|digit| digit.to_ascii_uppercase()));
        }
    }
    form
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
            "sk_live_%2b%2f%3d%224eC39H".to_owned(),
            "sk_live_\\u002B/=\\u00224eC39H".to_owned(),
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
