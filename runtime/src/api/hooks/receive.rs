//! `POST /v1/hooks/{tenant}.{hook}`: a sender's delivery. The signature is checked over the bytes as they came, before anything
//! of them is parsed. The delivery's own id is the request key: what comes twice is answered twice and done once.
//!
//! Nothing tells a sender without the secret what there is: no such tenant, no such hook and a wrong signature are one answer,
//! made with the same work. No body, signature or secret may reach a log, an error or a table.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::config::{Config, Written};
use super::text::Arrived;
use super::{is_name, work};
use crate::api::error::{Problem, Result};
use crate::api::extract::{self, Json, Path, stored};
use crate::api::{Api, depth, keyed, name};
use crate::gateway::incoming::Check;
use crate::store::hook::{self, Noted};
use crate::webhook::scheme::Signed;

const OPERATION: &str = "POST /v1/hooks/{name}";
const REFUSED: &str =
    "there is no such hook, or the delivery is not signed with its secret, or was not signed just now";

/// The longest id that is a request key as it is.
const LONGEST_KEY: usize = 255;

/// What a delivery is answered with.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = HookAnswer)]
pub struct Told {
    /// False: nothing was done, and nothing will be when it is sent again.
    pub accepted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Uuid>,
    /// Why it was not accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

/// A hook whose secret has signed the delivery.
pub struct Known {
    pub tenant: String,
    pub hook: String,
    pub config: Config,
}

/// Bodies of deliveries that arrive at once on this node, and how long one may take.
pub const MAX_ARRIVING: usize = 64;
const ARRIVAL: Duration = Duration::from_secs(10);

/// Takes a webhook from its sender, who proves itself by the signature.
///
/// The delivery's own id is its request key: what comes twice is answered twice and done once. No such hook and a
/// wrong signature are one answer.
#[utoipa::path(
    post, path = "/hooks/{name}", operation_id = "deliver_webhook", tag = "hooks",
    request_body(content = Value, description = "As the sender makes it; the signature is over its bytes."),
    responses(
        (status = 200, body = Told, description = "The hook does not want it."),
        (status = 202, body = Told),
        (status = 401),
        (status = 422),
        (status = 429)
    )
)]
pub async fn deliver(State(api): State<Api>, Path(name): Path<String>, request: Request) -> Result<Response> {
    let (parts, body) = request.into_parts();
    // Read before anything is looked up: else the time of a refusal would tell whether there is a hook. Nobody has proved anything
    // yet, so what all of these bodies cost together is bounded.
    let limits = &api.config.api;
    let body = {
        let busy = |_| Problem::busy("too many deliveries arrive at once: send it again soon");
        let _place = api.hook_bodies.try_acquire().map_err(busy)?;
        let reading = extract::read(body, limits.max_body_bytes, limits);
        tokio::time::timeout(ARRIVAL, reading).await.map_err(|_| Problem::request_timeout())??
    };
    let known = verified(&api, &name, &parts.headers, &body).await?;
    tracing::Span::current().record("tenant.id", known.tenant.as_str());
    let shallow = depth::check(&body, limits.max_json_depth).is_ok();
    let json = serde_json::from_slice::<&RawValue>(&body).ok().filter(|_| shallow);
    let arrived = Arrived { headers: &parts.headers, body: json };
    if !known.config.wants(&arrived) {
        return Ok(Json(Told::default()).into_response());
    }
    let id = known.config.delivery_id.take(&arrived).and_then(|id| key(&id));
    let answer = match &id {
        Ok(id) => once(&api, &known, &arrived, id).await,
        Err(words) => Err(Problem::hook_unmapped(format!("delivery_id: {words}"))),
    };
    match answer {
        Err(problem) => {
            note(&api, &known, id.unwrap_or_default(), &problem).await;
            Err(problem)
        }
        answer => answer,
    }
}

/// The hook that the path names, if its secret has signed the delivery.
async fn verified(api: &Api, name: &str, headers: &HeaderMap, body: &[u8]) -> Result<Known> {
    let named = name.split_once('.').filter(|(tenant, hook)| name::is_tenant(tenant) && is_name(hook));
    let found = match named {
        Some((tenant, hook)) => hook::find_checked(&api.store, tenant, hook).await?.map(|found| (tenant, hook, found)),
        None => None,
    };
    let mut now = 0;
    let mut known = None;
    if let Some((tenant, hook, found)) = found {
        now = found.now;
        let config = stored::<Written>(&found.config)?.check();
        let config =
            config.map_err(|e| Problem::internal(format!("a stored hook cannot be used: {:?}", e.refusal())))?;
        let check = Check { tenant: tenant.to_owned(), scheme: config.scheme.clone(), secrets: found.secrets };
        known = Some((check, Known { tenant: tenant.to_owned(), hook: hook.to_owned(), config }));
    }
    let check = known.as_ref().map(|(check, _)| check);
    let signed = api.gateway.is_signed(check, &Signed { headers, body, now }).await;
    let known = known.filter(|_| signed).ok_or_else(|| Problem::unauthenticated(REFUSED))?;
    Ok(known.1)
}

/// A request key of the delivery's id: itself, or its hash where it has other characters or is too long.
fn key(id: &str) -> std::result::Result<String, String> {
    match id.len() {
        0 => Err("it is empty".to_owned()),
        1..=LONGEST_KEY if id.bytes().all(|c| c.is_ascii_graphic()) => Ok(id.to_owned()),
        _ => Ok(format!("blake3:{}", name::hex(blake3::hash(id.as_bytes()).as_bytes()))),
    }
}

/// Does what the hook makes of the delivery, or gives the answer that it got before, whatever the hook says now.
async fn once(api: &Api, known: &Known, arrived: &Arrived<'_>, id: &str) -> Result<Response> {
    let params = [("name", known.hook.as_str())];
    let prepared = work::prepare(api, known, arrived, id);
    let outcome = keyed::delivery(api, &known.tenant, OPERATION, &params, id, prepared).await?;
    Ok(outcome.answer.response(outcome.replayed))
}

/// Notes for the tenant that a delivery was refused. One that failed here is not noted: the sender sends it again.
async fn note(api: &Api, known: &Known, delivery_id: String, problem: &Problem) {
    let Some(words) = problem.refusal() else { return };
    let reason = Some(words.to_owned());
    let noted = Noted { delivery_id, outcome: "refused".to_owned(), run_id: None, reason };
    if let Err(error) = hook::note(&api.store, &known.tenant, &known.hook, &noted).await {
        tracing::warn!(%error, "a refused delivery could not be noted");
    }
}

impl Told {
    pub fn accepted(run_id: Uuid) -> Self {
        Self { accepted: true, run_id: Some(run_id), reason: None }
    }

    pub fn declined(reason: &'static str, run_id: Uuid) -> Self {
        Self { accepted: false, run_id: Some(run_id), reason: Some(reason) }
    }

    pub fn answer(&self) -> Result<keyed::Answer> {
        let answer = keyed::Answer::json(StatusCode::ACCEPTED, self)?;
        Ok(match self.run_id {
            Some(run_id) if self.accepted => answer.of_run(run_id),
            _ => answer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_own_key_when_it_can_be() {
        let long = "x".repeat(256);
        for same in ["1", "evt_1/{}\"", &long[1..]] {
            assert_eq!(key(same).as_deref(), Ok(same));
        }
        for other in ["a b", "ä", "a\u{0}", &long] {
            let hashed = key(other).unwrap();
            assert!(hashed.starts_with("blake3:") && hashed.len() == 71, "{hashed}");
        }
        assert_ne!(key("a b"), key("a  b"));
        assert!(key("").is_err());
    }
}
