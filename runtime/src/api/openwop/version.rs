//! Which version of the protocol is spoken: a request may ask for one by its major number, and every answer names the
//! one that made it.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::api::error::Problem;

/// The one that is spoken.
pub const VERSION: &str = "2.0";
const MAJOR: &str = "2";
const HEADER: HeaderName = HeaderName::from_static("openwop-version");

/// Refuses a request that asks for another major version.
pub async fn negotiate(request: Request, next: Next) -> Response {
    match is_spoken(request.headers()) {
        true => next.run(request).await,
        false => Problem::version_unsupported(&[VERSION]).into_response(),
    }
}

/// Names the version on every answer of the profile's paths, refusals included. It stands around whatever makes
/// answers.
pub async fn mark(request: Request, next: Next) -> Response {
    let ours = is_ours(request.uri().path());
    let mut response = next.run(request).await;
    if ours {
        response.headers_mut().insert(HEADER, HeaderValue::from_static(VERSION));
    }
    response
}

/// The minor number is for information.
fn is_spoken(headers: &HeaderMap) -> bool {
    headers.get_all(HEADER).iter().all(|value| {
        let Ok(text) = value.to_str() else { return false };
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        major == MAJOR && !minor.is_empty() && minor.bytes().all(|digit| digit.is_ascii_digit())
    })
}

fn is_ours(path: &str) -> bool {
    let below = |rest: &str| rest.is_empty() || rest.starts_with(['/', ':']);
    matches!(path, "/.well-known/openwop" | "/host/effect-seams") || path.strip_prefix("/runs").is_some_and(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(values: &[&'static str]) -> bool {
        is_spoken(&values.iter().map(|value| (HEADER, HeaderValue::from_static(value))).collect())
    }

    #[test]
    fn only_the_major_number_selects() {
        for good in [&[][..], &["2"], &["2.0"], &["2.17"], &["2", "2.0"]] {
            assert!(spoken(good), "{good:?}");
        }
        for other in [&["1"][..], &["1.0"], &["3.0"], &["20"], &[""], &["two"], &["2."], &["2.x"], &["v2"], &["2", "1"]]
        {
            assert!(!spoken(other), "{other:?}");
        }
    }

    #[test]
    fn the_native_routes_name_no_version() {
        for path in ["/runs", "/runs/x", "/runs:bulk-cancel", "/runs/x:pause", "/.well-known/openwop"] {
            assert!(is_ours(path), "{path}");
        }
        for path in ["/v1/runs", "/runsx", "/healthz", "/", "/conformance/seams/x"] {
            assert!(!is_ours(path), "{path}");
        }
    }
}
