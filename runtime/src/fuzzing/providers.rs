//! What providers answer: how it is read, what of it is kept, and what is masked in it.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use data_encoding::{BASE64, BASE64URL, HEXLOWER, HEXUPPER};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::parts::{headers, pieces, text};
use crate::config::GatewayConfig;
use crate::gateway::answer as answers;
use crate::gateway::mask::Mask;
use crate::gateway::pace::retry_after;
use crate::gateway::provider::answers::{Condition, values_at};
use crate::gateway::transport::{Body, Sent};

/// A condition, headers and a body. Nothing secret is shown or kept of an answer, and a pause is the one that was asked for.
pub fn answer(input: &[u8]) {
    let [condition, lines, body] = pieces(input);
    let headers = headers(lines);
    if let Ok(condition) = serde_json::from_slice::<Condition>(condition) {
        let fits = condition.fits(200, &headers, body);
        let told = condition.status.is_none_or(|status| status == 200) || condition.statuses.contains(&200);
        assert!(!fits || told, "another status fits");
    }
    points_alike(text(condition), body);
    for value in headers.get_all("retry-after") {
        paused(text(value.as_bytes()));
    }
    let kept = answers::kept(&headers, None);
    let pairs: Vec<(String, String)> = serde_json::from_str(&kept).unwrap_or_else(|e| panic!("kept is no JSON: {e}"));
    let secret = ["set-cookie", "www-authenticate", "authorization", "proxy-authenticate"];
    assert!(pairs.iter().all(|(name, value)| !secret.contains(&name.as_str()) && !value.contains('\0')));
    let whole = Body::Whole(Bytes::copy_from_slice(body));
    let sent = Sent::Answer { status: 200, headers: headers.clone(), body: whole };
    let shown = answers::shown(sent, "sent", None, &GatewayConfig::default());
    let shown = shown.unwrap_or_else(|e| panic!("a whole answer is not shown: {e}"));
    assert_eq!(shown.body.as_deref(), Some(body));
    assert!(shown.headers.iter().all(|(name, _)| name != "set-cookie"), "a cookie is shown");
}

/// A pointer without `*` leads where another reader of RFC 6901 finds something.
fn points_alike(pointer: &str, body: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Value>(body) else { return };
    if pointer.contains('*') || !(pointer.is_empty() || pointer.starts_with('/')) {
        return;
    }
    let found: Vec<&Value> = values_at(&json, pointer);
    assert_eq!(found, json.pointer(pointer).into_iter().collect::<Vec<_>>(), "a pointer leads elsewhere");
}

fn paused(value: &str) {
    // 2023-11-14T22:13:20Z.
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let Some(wait) = retry_after(value, now) else { return };
    assert!(!wait.is_zero(), "a pause of nothing");
    let said = value.trim();
    if said.bytes().all(|byte| byte.is_ascii_digit()) {
        assert!(said.parse::<u64>().map_or(true, |seconds| wait == Duration::from_secs(seconds)), "another pause");
    }
}

/// A secret, and what comes before and after it. Nothing that was masked has it in any form.
pub fn mask(input: &[u8]) {
    let [secret, before, after] = pieces(input).map(text);
    let mask = Mask::new(secret);
    assert_eq!(format!("{mask:?}"), "Mask");
    for part in parts(secret) {
        for form in forms(&part) {
            let masked = mask.body(Bytes::from(format!("{before}{form}{after}")));
            assert!(!holds(&masked, &form), "the secret is shown as it is written here: {form}");
            masked_in_header(&mask, &form);
        }
        let whole = format!("{before}{part}{after}");
        for encoded in [BASE64.encode(whole.as_bytes()), BASE64URL.encode(whole.as_bytes())] {
            let first = (before.len() * 8).div_ceil(6);
            let last = (before.len() + part.len()) * 8 / 6;
            let inner = &encoded[first..last];
            assert!(!holds(&mask.body(Bytes::from(encoded.clone())), inner), "the secret is shown in base64");
        }
    }
}

fn masked_in_header(mask: &Mask, form: &str) {
    let Ok(value) = HeaderValue::from_str(form) else { return };
    let mut headers = HeaderMap::from_iter([(HeaderName::from_static("x-echo"), value)]);
    mask.headers(&mut headers);
    assert!(!holds(headers["x-echo"].as_bytes(), form), "the secret is shown in a header");
}

/// What is secret by itself. Short parts are not masked; one with a bracket may be made anew by the mask's own text.
fn parts(secret: &str) -> Vec<String> {
    let mut parts = vec![secret.to_owned()];
    match serde_json::from_str(secret) {
        Ok(Value::Object(members)) => parts.extend(members.values().filter_map(Value::as_str).map(str::to_owned)),
        _ => parts.extend(secret.split_once(':').into_iter().flat_map(|(a, b)| [a.to_owned(), b.to_owned()])),
    }
    parts.retain(|part| part.len() >= 8 && !part.contains(['[', ']']));
    parts
}

/// As programs write a text into what they send.
fn forms(part: &str) -> Vec<String> {
    /// RFC 3986, unreserved.
    const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    /// ECMAScript's encodeURIComponent.
    const COMPONENT: &AsciiSet = &UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');
    let quoted = Value::from(part).to_string();
    let quoted = quoted[1..quoted.len() - 1].to_owned();
    let go = quoted.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    let mut forms = vec![
        part.to_owned(),
        quoted.replace('/', "\\/"),
        go,
        ascii(&quoted),
        ascii(&quoted).replace('/', "\\/"),
        quoted,
        url::form_urlencoded::byte_serialize(part.as_bytes()).collect(),
        HEXLOWER.encode(part.as_bytes()),
        HEXUPPER.encode(part.as_bytes()),
    ];
    for set in [NON_ALPHANUMERIC, UNRESERVED, COMPONENT] {
        let upper = utf8_percent_encode(part, set).to_string();
        forms.extend([lower_escapes(&upper), upper]);
    }
    forms
}

/// A JSON text in ASCII.
fn ascii(text: &str) -> String {
    let mut out = String::new();
    for unit in text.encode_utf16() {
        match u8::try_from(unit).ok().filter(u8::is_ascii) {
            Some(byte) => out.push(char::from(byte)),
            None => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out
}

/// The same with the digits of each `%HH` in lower case.
fn lower_escapes(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        let (digits, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        out + "%" + &digits.to_lowercase() + rest
    })
}

fn holds(bytes: &[u8], form: &str) -> bool {
    bytes.windows(form.len()).any(|window| window == form.as_bytes())
}
