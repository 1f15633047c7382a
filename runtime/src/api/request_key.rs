//! Request keys: the caller's own `Idempotency-Key`. They never appear in a log, a span or an error.

use axum::http::HeaderMap;

use super::error::{Problem, Result};

const HEADER: &str = "idempotency-key";

/// The key of a request, if it has one. An empty, repeated or malformed header is an error, never no key.
pub fn of(headers: &HeaderMap) -> Result<Option<String>> {
    let mut all = headers.get_all(HEADER).iter();
    let Some(one) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        return Err(Problem::key_invalid("Idempotency-Key: there must be one header"));
    }
    let text = one.to_str().map_err(|_| Problem::key_invalid(rule("Idempotency-Key")))?;
    check("Idempotency-Key", text).map(Some)
}

/// A key in its bare form. A quoted structured-field string (RFC 8941) is the key inside it.
pub fn check(field: &str, text: &str) -> Result<String> {
    let bare = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    let known = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'~' | b'-');
    if (22..=128).contains(&bare.len()) && bare.bytes().all(known) {
        return Ok(bare.to_owned());
    }
    Err(Problem::key_invalid(rule(field)))
}

fn rule(field: &str) -> String {
    format!("{field}: must be 22 to 128 characters of A-Z a-z 0-9 . _ ~ -, for example a UUID")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(values: &[&[u8]]) -> std::result::Result<Option<String>, ()> {
        let pair = |value: &&[u8]| (HEADER.parse().unwrap(), HeaderValue::from_bytes(value).unwrap());
        let mut headers = HeaderMap::new();
        for (name, value) in values.iter().map(pair) {
            let name: axum::http::HeaderName = name;
            headers.append(name, value);
        }
        of(&headers).map_err(|_| ())
    }

    #[test]
    fn a_key_is_read_bare_or_quoted_and_nothing_else_is_one() {
        let key = "0123456789abcdefABCD._~-";
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[key.as_bytes()]), Ok(Some(key.to_owned())));
        assert_eq!(read(&[format!("\"{key}\"").as_bytes()]), Ok(Some(key.to_owned())));
        let long = [b'a'; 129];
        for wrong in [&b""[..], b"short", b"\"\"", b"0123456789abcdef 0123456789", &[0xff; 30], &long] {
            assert_eq!(read(&[wrong]), Err(()), "{wrong:?}");
        }
        assert_eq!(read(&[key.as_bytes(), key.as_bytes()]), Err(()));
    }
}
