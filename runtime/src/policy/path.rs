//! Paths of URLs, as a rule may bound them. A server may decode a path before it looks for `..` in it, and more than once;
//! only a path that means the same to all of them is compared.

use percent_encoding::percent_decode;
use url::Url;

/// A path that is still encoded after so many rounds hides something.
const ROUNDS: usize = 8;

/// Checks the beginning of paths as a rule names it.
pub fn check_prefix(prefix: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("path_prefix `{prefix}`: {why}"));
    if !prefix.starts_with('/') {
        return wrong("it must begin with `/`");
    }
    let lower = prefix.to_ascii_lowercase();
    if !is_plain(prefix) || ["%2e", "%2f", "%5c", ";", "?", "#"].iter().any(|part| lower.contains(part)) {
        return wrong("it must be plain segments: without `.`, `..`, `;`, a query, and encoded dots and slashes");
    }
    match Url::parse(&format!("https://host{prefix}")) {
        Ok(url) if url.path() == prefix => Ok(()),
        Ok(url) => wrong(&format!("write it as `{}`", url.path())),
        Err(error) => wrong(&error.to_string()),
    }
}

/// Whether a path begins with these whole segments. A prefix that ends with `/` holds what is below it alone.
pub fn is_under(path: &str, prefix: &str) -> bool {
    let rest = path.strip_prefix(prefix);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/'))
}

/// Whether no server can take a segment of this path for `.` or `..`, however often it decodes it.
pub fn is_plain(path: &str) -> bool {
    let Some(decoded) = decoded(path) else { return false };
    let hidden = decoded.contains("%u") || decoded.chars().any(char::is_control);
    let mut segments = decoded.split(['/', '\\']);
    !hidden && !segments.any(is_dots)
}

/// Dots alone, as some servers see it: without what follows a `;`, and without spaces.
fn is_dots(segment: &str) -> bool {
    let name = segment.split(';').next().unwrap_or_default();
    name.contains('.') && name.chars().all(|c| c == '.' || c.is_whitespace())
}

/// Decoded until nothing is left to decode. None when it is no text, or has no end.
fn decoded(path: &str) -> Option<String> {
    let mut text = path.to_owned();
    for _ in 0..ROUNDS {
        let next = percent_decode(text.as_bytes()).decode_utf8().ok()?.into_owned();
        if next == text {
            return Some(text);
        }
        text = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_holds_whole_segments() {
        for (prefix, path, held) in [
            ("/", "/", true),
            ("/", "/x", true),
            ("/v1", "/v1", true),
            ("/v1", "/v1/", true),
            ("/v1", "/v1/x", true),
            ("/v1", "/v10", false),
            ("/v1", "/v1;x", false),
            ("/v1", "/v1%2fx", false),
            ("/v1", "/V1/x", false),
            ("/v1", "//v1/x", false),
            ("/v1", "/", false),
            ("/v1", "/x/v1", false),
            ("/v1/", "/v1/", true),
            ("/v1/", "/v1/x", true),
            ("/v1/", "/v1", false),
            ("/v1/", "/v10/", false),
            ("/v1/a", "/v1/a/b", true),
            ("/v1/a", "/v1/b", false),
        ] {
            assert_eq!(is_under(path, prefix), held, "{path} under {prefix}");
        }
    }

    #[test]
    fn a_path_that_a_server_could_climb_out_of_is_not_plain() {
        for plain in [
            "/",
            "/v1/x",
            "/v1//x",
            "/a.b/..c/d..",
            "/v1/a%2Fb",
            "/v1/a%20b",
            "/%C3%A4",
            "/a;v=1/b",
            "/50%25",
            "/a%2eb",
        ] {
            assert!(is_plain(plain), "{plain}");
        }
        for hidden in [
            "/v1/..%2fx",
            "/v1/..%2Fx",
            "/v1/%2e%2e%2fx",
            "/v1/%2E%2E%5cx",
            "/v1/..%5Cx",
            "/v1/x%2f..%2f..%2fy",
            "/v1/%252e%252e/x",
            "/v1/%25252e%25252e/x",
            "/v1/..%252fx",
            "/v1/..;/x",
            "/v1/..;a=b/x",
            "/v1/..%3b/x",
            "/v1/.%20./x",
            "/v1/..%20/x",
            "/v1/..%00/x",
            "/v1/.../x",
            "/v1/%c0%ae%c0%ae/x",
            "/v1/%u002e%u002e/x",
            "/v1/..\\x",
            "/v1/../x",
            "/v1/./x",
        ] {
            assert!(!is_plain(hidden), "{hidden}");
        }
        assert!(!is_plain(&format!("/v1/%{}2e", "25".repeat(ROUNDS))));
    }

    #[test]
    fn a_prefix_is_plain_and_written_as_it_is_sent() {
        for prefix in ["/", "/v1", "/v1/", "/v1/charges", "/a%20b", "/%C3%A4", "/a:b@c"] {
            assert_eq!(check_prefix(prefix), Ok(()), "{prefix}");
        }
        for wrong in [
            "",
            "v1",
            "*",
            "/v1?x",
            "/v1#x",
            "/v1/..",
            "/v1/./x",
            "/v1/%2e%2e",
            "/v1%2fx",
            "/v1%5Cx",
            "/v1\\x",
            "/v1;x",
            "/v1/%252e%252e",
            "/ä",
            "/a b",
            "/a\nb",
            "/a%2eb",
        ] {
            assert!(check_prefix(wrong).is_err(), "{wrong}");
        }
        assert!(check_prefix("/ä").unwrap_err().contains("/%C3%A4"));
    }
}
