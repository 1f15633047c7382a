//! `GET /.well-known/openwop`: what this host offers, for anyone who asks. It claims only what is there: a family that
//! is not named is not offered. Nothing of a tenant may be seen in it.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::version::VERSION;
use super::{fixtures, runs};
use crate::api::Api;
use crate::api::error::{Problem, Result};
use crate::config::ApiConfig;

/// The log's form that runs are written in.
pub const LOG_VERSION: u32 = 3;

/// The profile of the conformance suite's own routes.
const SEAMS: &str = "openwop-conformance-seams-v2";

/// What this host offers.
#[utoipa::path(
    get, path = "/.well-known/openwop", operation_id = "openwop_discover", tag = "openwop",
    params(("If-None-Match" = Option<String>, Header, description = "The ETag of what the caller has.")),
    responses(
        (status = 200, body = std::collections::BTreeMap<String, Value>,
            headers(("ETag", description = "Changes when the answer does."))),
        (status = 304)
    )
)]
pub async fn show(State(api): State<Api>, headers: HeaderMap) -> Result<Response> {
    tagged(&headers, &document(&api.config.api))
}

fn document(config: &ApiConfig) -> Value {
    let mut document = json!({
        "protocolVersion": VERSION,
        "protocolVersions": [VERSION],
        "preferredVersion": VERSION,
        "implementation": { "name": "deedbox", "version": env!("CARGO_PKG_VERSION") },
        "eventLogSchemaVersion": LOG_VERSION,
        "idempotency": {
            "status": "stable", "since": VERSION, "witness": "witnessable-gated", "crossRegion": "single-region",
        },
        "runList": {
            "status": "stable", "since": VERSION, "witness": "witnessable-gated",
            "maxPageSize": runs::max_page(config), "filters": ["workflowId"],
        },
    });
    if config.openwop_fixtures {
        document["fixtures"] = json!(fixtures::NAMES);
    }
    if config.openwop_seams {
        document["conformance"] = json!({ "seamsProfile": SEAMS });
    }
    document
}

/// A JSON answer with a tag of its bytes; 304 without a body for whoever has them already.
pub fn tagged(headers: &HeaderMap, body: &impl serde::Serialize) -> Result<Response> {
    let bytes = serde_json::to_vec(body).map_err(|e| Problem::internal(format!("an answer cannot be written: {e}")))?;
    let tag = format!("\"{}\"", blake3::hash(&bytes).to_hex());
    let mut response = match is_known(headers, &tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(header::CONTENT_TYPE, "application/json")], bytes).into_response(),
    };
    if let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let named = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_switched_on_is_claimed() {
        let plain = document(&ApiConfig::default());
        assert!(plain.get("fixtures").is_none() && plain.get("conformance").is_none(), "{plain}");
        let config = ApiConfig { openwop_fixtures: true, openwop_seams: true, ..ApiConfig::default() };
        let all = document(&config);
        assert_eq!(all["fixtures"], json!(["conformance-noop", "conformance-delay", "conformance-failure"]));
        assert_eq!(all["conformance"]["seamsProfile"], SEAMS);
    }

    #[test]
    fn a_tag_is_known_in_any_of_its_forms() {
        let known = |value: &'static str| {
            is_known(&HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_static(value))]), "\"a\"")
        };
        assert!(known("\"a\"") && known("\"b\", W/\"a\"") && known("*"));
        assert!(!known("\"b\"") && !known("a") && !is_known(&HeaderMap::new(), "\"a\""));
    }
}
