//! Request keys as they are sent: the caller's own `Idempotency-Key`, and how strictly it is to be handled. They never appear
//! in a log, a span or an error.

use axum::http::HeaderMap;

use super::error::{Problem, Result};

const HEADER: &str = "idempotency-key";
const PREFER: &str = "prefer";

/// What a lenient answer says of itself (RFC 7240).
pub const APPLIED: (&str, &str) = ("preference-applied", "handling=lenient");

/// How a key is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// 22 to 128 characters; another request under a known key is refused.
    Strict,
    /// 1 to 255 visible characters; a known key is answered with its run, whatever the request says.
    Lenient,
}

/// What the sender prefers.
pub fn handling(headers: &HeaderMap) -> Handling {
    let preferences = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    let mut each = preferences.flat_map(|value| value.split(',')).map(|one| one.split(';').next().unwrap_or(one));
    let lenient = each.any(|one| {
        let mut parts = one.splitn(2, '=').map(|part| part.trim().trim_matches('"').to_ascii_lowercase());
        parts.next().as_deref() == Some("handling") && parts.next().as_deref() == Some("lenient")
    });
    if lenient { Handling::Lenient } else { Handling::Strict }
}

/// The key of a request, if it has one. An empty, repeated or malformed header is an error, never no key.
pub fn of(headers: &HeaderMap, handling: Handling) -> Result<Option<String>> {
    let mut all = headers.get_all(HEADER).iter();
    let Some(one) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        return Err(Problem::key_invalid("Idempotency-Key: there must be one header"));
    }
    let text = one.to_str().map_err(|_| Problem::key_invalid(rule("Idempotency-Key", handling)))?;
    check("Idempotency-Key", text, handling).map(Some)
}

/// A key in its bare form. A quoted structured-field string (RFC 8941) is the key inside it.
pub fn check(field: &str, text: &str, handling: Handling) -> Result<String> {
    let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let bare = quoted.unwrap_or(text);
    let known = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'~' | b'-');
    let right = match handling {
        Handling::Strict => (22..=128).contains(&bare.len()) && bare.bytes().all(known),
        Handling::Lenient => (1..=255).contains(&bare.len()) && bare.bytes().all(|c| c.is_ascii_graphic()),
    };
    if right { Ok(bare.to_owned()) } else { Err(Problem::key_invalid(rule(field, handling))) }
}

fn rule(field: &str, handling: Handling) -> String {
    match handling {
        Handling::Strict => format!("{field}: must be 22 to 128 characters of A-Z a-z 0-9 . _ ~ -, for example a UUID"),
        Handling::Lenient => format!("{field}: must be 1 to 255 visible ASCII characters without spaces"),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(name: &'static str, values: &[&[u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    fn read(values: &[&[u8]], handling: Handling) -> std::result::Result<Option<String>, ()> {
        of(&headers(HEADER, values), handling).map_err(|_| ())
    }

    #[test]
    fn a_key_is_read_bare_or_quoted_and_nothing_else_is_one() {
        let key = "0123456789abcdefABCD._~-";
        let strict = |values: &[&[u8]]| read(values, Handling::Strict);
        assert_eq!(strict(&[]), Ok(None));
        assert_eq!(strict(&[key.as_bytes()]), Ok(Some(key.to_owned())));
        assert_eq!(strict(&[format!("\"{key}\"").as_bytes()]), Ok(Some(key.to_owned())));
        let long = [b'a'; 129];
        for wrong in [&b""[..], b"short", b"\"\"", b"0123456789abcdef 0123456789", &[0xff; 30], &long] {
            assert_eq!(strict(&[wrong]), Err(()), "{wrong:?}");
        }
        assert_eq!(strict(&[key.as_bytes(), key.as_bytes()]), Err(()));
    }

    /// R-Z03.
    #[test]
    fn a_lenient_key_is_any_visible_text() {
        let lenient = |values: &[&[u8]]| read(values, Handling::Lenient);
        assert_eq!(lenient(&[b"evt_1/{}"]), Ok(Some("evt_1/{}".to_owned())));
        assert!(lenient(&[&[b'a'; 255]]).is_ok());
        for wrong in [&b""[..], b"\"\"", b"a b", &[0xff; 30], &[b'a'; 256]] {
            assert_eq!(lenient(&[wrong]), Err(()), "{wrong:?}");
        }
    }

    #[test]
    fn lenient_handling_is_asked_for_in_words() {
        let asked = |values: &[&[u8]]| handling(&headers(PREFER, values));
        let lenient: [&[&[u8]]; 4] = [
            &[b"handling=lenient"],
            &[b"respond-async, Handling = \"lenient\"; x=1"],
            &[b"wait=5", b"handling=lenient"],
            &[b"handling=lenient;q"],
        ];
        for values in lenient {
            assert_eq!(asked(values), Handling::Lenient, "{values:?}");
        }
        for values in [&[][..], &[&b"handling=strict"[..]], &[b"lenient"], &[b"handling"]] {
            assert_eq!(asked(values), Handling::Strict, "{values:?}");
        }
    }
}
