//! What handlers take from a request: path, query, JSON body, component. Each refuses what is not right in the words of
//! the envelope; no body is read beyond its limit.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::error::{Problem, Result};
use super::{Api, depth};
use crate::config::{ApiConfig, Config, ms};

/// The parameters of the path. One that cannot be read names nothing.
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Api> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let path = axum::extract::Path::from_request_parts(parts, api).await;
        path.map(|axum::extract::Path(path)| Self(path)).map_err(|_| Problem::not_found("resource"))
    }
}

/// The parameters of the query.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Api> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let query = axum::extract::Query::from_request_parts(parts, api).await;
        query.map(|axum::extract::Query(query)| Self(query)).map_err(|e| Problem::validation(e.body_text()))
    }
}

/// A JSON answer.
pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
            Err(error) => Problem::internal(format!("an answer cannot be written: {error}")).into_response(),
        }
    }
}

/// A JSON text as it was sent.
pub fn json_text(bytes: &[u8], config: &Config) -> Result<String> {
    depth::check(bytes, config.api.max_json_depth)?;
    let text: Box<RawValue> = serde_json::from_slice(bytes).map_err(|e| Problem::validation(format!("body: {e}")))?;
    Ok(text.get().to_owned())
}

/// A stored JSON text, put into an answer as it is.
pub fn raw(json: String) -> Result<Box<RawValue>> {
    RawValue::from_string(json).map_err(|e| Problem::internal(format!("a stored JSON text cannot be read: {e}")))
}

/// Reads a stored JSON text.
pub fn stored<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T> {
    serde_json::from_str(json).map_err(|e| Problem::internal(format!("a stored JSON text cannot be read: {e}")))
}

pub fn media_type(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    kind.split(';').next().map(|kind| kind.trim().to_ascii_lowercase())
}

pub fn is_json(kind: &str) -> bool {
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// Reads a whole body. Neither a silence nor the whole may take longer than the settings say.
pub async fn read(body: Body, limit: usize, times: &ApiConfig) -> Result<Bytes> {
    if body.size_hint().lower() > limit as u64 {
        return Err(Problem::too_large(limit));
    }
    let whole = gather(body, limit, ms(times.body_silence_ms));
    tokio::time::timeout(ms(times.body_ms), whole).await.map_err(|_| Problem::request_timeout())?
}

async fn gather(mut body: Body, limit: usize, silence: Duration) -> Result<Bytes> {
    let mut whole = Vec::new();
    while let Some(frame) = tokio::time::timeout(silence, body.frame()).await.map_err(|_| Problem::request_timeout())? {
        let frame = frame.map_err(|_| Problem::validation("the body was cut off"))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > limit {
            return Err(Problem::too_large(limit));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.into())
}

/// Reads a body that must be an object: serde would take an array for a struct too.
pub fn parse<T: DeserializeOwned>(bytes: &[u8], config: &Config) -> Result<T> {
    depth::check(bytes, config.api.max_json_depth)?;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|first| matches!(first, b'[')) {
        return Err(Problem::validation("body: must be a JSON object"));
    }
    match axum::Json::from_bytes(bytes) {
        Ok(axum::Json(value)) => Ok(value),
        Err(rejection) => Err(Problem::validation(explain(&rejection))),
    }
}

/// The reader's own words, with the field and the position.
fn explain(rejection: &axum::extract::rejection::JsonRejection) -> String {
    let source = std::error::Error::source(rejection);
    source.map_or_else(|| rejection.body_text(), |e| format!("body: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        #[serde(default)]
        input: Option<Box<RawValue>>,
        #[serde(default)]
        count: u8,
    }

    fn parsed(text: &str) -> Result<Body> {
        parse(text.as_bytes(), &Config::default())
    }

    fn refusal(text: &str) -> String {
        format!("{:?}", parsed(text).unwrap_err())
    }

    #[test]
    fn an_input_keeps_its_exact_text() {
        let text = r#"{"a": 9007199254740993, "b" : "\u0000\ud800", "a":1.0e2 }"#;
        let body = parsed(&format!("{{\"input\": {text} }}")).unwrap();
        assert_eq!(body.input.unwrap().get(), text);
        let empty = parsed(" {} ").unwrap();
        assert!(empty.input.is_none() && empty.count == 0);
    }

    #[test]
    fn an_input_is_as_deep_as_the_settings_allow() {
        let nested = |levels: usize| format!("{{\"input\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(parsed(&nested(127)).is_ok());
        for levels in [128, 100_000] {
            assert!(refusal(&nested(levels)).contains("deeper than 128 levels"));
        }
    }

    #[test]
    fn a_refusal_names_the_field_and_the_position() {
        assert!(refusal(r#"{"count": 300}"#).contains("count: invalid value"), "{}", refusal(r#"{"count": 300}"#));
        assert!(refusal(r#"{"other": 1}"#).contains("unknown field `other`"));
        assert!(refusal("{\"count\":\n 1,}").contains("line 2 column"));
        assert!(refusal("{} {}").contains("line 1 column"));
        for wrong in ["", "[]", "[null, 1]", "7", "{\"input\": \"\u{1}\"}", "{\"input\": nul}"] {
            assert!(refusal(wrong).contains("body: "), "{wrong}");
        }
    }

    #[test]
    fn media_types_are_compared_without_case_and_parameters() {
        let kind = |text: &'static str| {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, header::HeaderValue::from_static(text))]);
            is_json(&media_type(&headers).unwrap())
        };
        assert!(kind("Application/JSON; charset=utf-8") && kind("application/merge-patch+json"));
        assert!(!kind("text/json") && !kind("application/jsonx") && !kind(""));
    }
}
