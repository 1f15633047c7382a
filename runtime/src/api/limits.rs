//! What the head of a request may be: so many bytes and header fields, and a target of so many bytes. Whatever is far above is
//! refused by the HTTP library without words, so its own limits have to lie above these.

use axum::extract::Request;

use super::error::{Problem, Result};
use crate::config::ApiConfig;

/// Header fields of one request.
pub const MOST_FIELDS: usize = 100;
/// What separates the parts of a head, and its first line but for the target.
const FRAMING: usize = 8 << 10;

/// Refuses a request whose head is larger than the settings allow.
pub fn check(request: &Request, config: &ApiConfig) -> Result<()> {
    let uri = request.uri();
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    if authority + path > config.max_target_bytes {
        return Err(Problem::target_too_long(config.max_target_bytes));
    }
    let headers = request.headers();
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    match bytes > config.max_header_bytes || headers.len() > MOST_FIELDS {
        true => Err(Problem::headers_too_large(config.max_header_bytes, MOST_FIELDS)),
        false => Ok(()),
    }
}

/// Bytes of a head beyond which nothing more of it is read.
pub fn unread_head(config: &ApiConfig) -> usize {
    2 * (config.max_header_bytes + config.max_target_bytes) + FRAMING
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn config() -> ApiConfig {
        ApiConfig { max_header_bytes: 20, max_target_bytes: 10, ..ApiConfig::default() }
    }

    fn refusal(target: &str, headers: &[(&str, &str)]) -> String {
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let outcome = check(&request.body(Body::empty()).unwrap(), &config());
        outcome.map_or_else(|problem| format!("{problem:?}"), |()| String::new())
    }

    #[test]
    fn names_and_values_of_all_fields_are_counted() {
        assert_eq!(refusal("/", &[("a", "12345"), ("b", "1234567890123")]), "");
        assert!(refusal("/", &[("a", "12345"), ("b", "12345678901234")]).contains("20 bytes"));
        assert!(refusal("/", &[("a", "12345"), ("a", "12345678901234")]).contains("20 bytes"));
    }

    #[test]
    fn the_whole_target_is_counted() {
        assert_eq!(refusal("/a?b=cdefg", &[]), "");
        assert!(refusal("/a?b=cdefgh", &[]).contains("10 bytes"));
        assert!(refusal("http://hhh/abcdefg", &[]).contains("10 bytes"));
    }

    #[test]
    fn many_small_fields_are_refused_too() {
        let wide = ApiConfig::default();
        let request = |fields: usize| {
            let names = (0..fields).map(|i| format!("x-{i}"));
            let built = names.fold(Request::builder().uri("/"), |request, name| request.header(name, ""));
            built.body(Body::empty()).unwrap()
        };
        assert!(check(&request(MOST_FIELDS), &wide).is_ok());
        assert!(check(&request(MOST_FIELDS + 1), &wide).is_err());
    }
}
