//! The refusals that operations share: one envelope, and which statuses an operation can have by what it is.

use serde_json::{Map, Value, json};

use super::operation::Kind;

/// Status, name and meaning. What may be kept under a request's key can be a replay.
const ALL: [(&str, &str, &str); 15] = [
    (
        "400",
        "Invalid",
        "`validation_error`, `idempotency_key_invalid` or `deedbox.signature_invalid`: the message names the field.",
    ),
    ("401", "Unauthenticated", "`unauthenticated`: there is no token, or it is not valid."),
    (
        "403",
        "Forbidden",
        "`forbidden`: the token lacks the scope; or `id_tenant_mismatch`, `deedbox.limit_reached` or `deedbox.signature_required`.",
    ),
    ("404", "NotFound", "`not_found`: there is no such thing, or it is another tenant's."),
    ("406", "NotAcceptable", "`protocol_version_unsupported`: another major version of OpenWOP was asked for."),
    ("408", "RequestTimeout", "`deedbox.request_timeout`: the request did not arrive in time."),
    (
        "409",
        "Conflict",
        "It does not fit what is there: the code says why. Or the request's key came with another request, or is being worked on.",
    ),
    ("413", "TooLarge", "`payload_too_large`: the body is larger than this route takes."),
    ("414", "TargetTooLong", "`deedbox.target_too_long`: the path and the query."),
    ("415", "MediaType", "`unsupported_media_type`: the body is of another one than this route takes."),
    (
        "422",
        "Unprocessable",
        "`capability_not_provided`: this host lacks it; or `deedbox.hook_unmapped`: the hook cannot use the delivery.",
    ),
    ("429", "RateLimited", "`rate_limited`: a limit is reached that may be free again soon."),
    ("431", "HeadersTooLarge", "`deedbox.headers_too_large`."),
    ("500", "InternalError", "`internal_error`: something went wrong here, not with the request."),
    (
        "503",
        "Unavailable",
        "`runner_unavailable`: the database does not answer, or there is too much to do; or `deedbox.request_too_slow`: it may still be done.",
    ),
];

const EVERYWHERE: [&str; 5] = ["408", "414", "431", "500", "503"];

pub fn is_refusal(status: &str) -> bool {
    ALL.iter().any(|(known, ..)| *known == status)
}

pub fn reference(status: &str) -> Value {
    let name = ALL.iter().find(|(known, ..)| *known == status).map_or("", |(_, name, _)| name);
    json!({ "$ref": format!("#/components/responses/{name}") })
}

/// The statuses of an operation's refusals.
pub fn of(kind: Kind) -> impl Iterator<Item = &'static str> {
    let if_so = |is_so: bool, statuses: &'static [&'static str]| if is_so { statuses } else { &[] };
    [
        if_so(kind.asked, &["400"]),
        if_so(kind.secured, &["401", "403"]),
        if_so(kind.names, &["404"]),
        if_so(kind.openwop, &["406"]),
        if_so(kind.changes, &["409", "413"]),
        if_so(kind.keyed, &["415"]),
        &EVERYWHERE,
    ]
    .into_iter()
    .flatten()
    .copied()
}

pub fn all() -> Value {
    let all = ALL.iter().map(|(status, name, words)| ((*name).to_owned(), refusal(status, words)));
    Value::Object(all.collect())
}

fn refusal(status: &str, words: &str) -> Value {
    let header = |name: &str| json!({ "$ref": format!("#/components/headers/{name}") });
    let mut headers = Map::from_iter([("x-request-id".to_owned(), header("RequestId"))]);
    match status {
        "401" => drop(headers.insert("WWW-Authenticate".to_owned(), header("Challenge"))),
        "409" | "429" | "503" => drop(headers.insert("Retry-After".to_owned(), header("RetryAfter"))),
        _ => {}
    }
    if matches!(status, "404" | "409" | "413" | "415" | "422") {
        headers.insert("OpenWOP-Idempotent-Replay".to_owned(), header("Replay"));
    }
    let content = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Problem" } } });
    json!({ "description": words, "headers": headers, "content": content })
}

pub fn headers() -> Value {
    json!({
        "RequestId": { "description": "Names the request in the node's log.", "schema": { "type": "string", "format": "uuid" } },
        "Replay": {
            "description": "There when the answer was given before, under the same request key.",
            "schema": { "type": "string", "const": "true" },
        },
        "RetryAfter": { "description": "Seconds until it is worth trying again.", "schema": { "type": "string" } },
        "Challenge": { "description": "How to prove who asks.", "schema": { "type": "string", "const": "Bearer" } },
    })
}
