//! `POST /v1/effects/{id}/resolve`: a person or a system says what became of an effect whose outcome nobody knows.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::{Caller, scope};
use super::effects;
use super::error::{Problem, Result};
use super::extract::Path;
use super::keyed::{Answer, Failed, Keyed, Work};
use super::{Api, name};
use crate::gateway::seal_answer;
use crate::key::EffectId;
use crate::store::Tx;
use crate::store::effect;
use crate::store::resolution::{self, Outcome, Resolution, Resolved};

/// The longest note, in bytes.
const LONGEST_NOTE: usize = 4096;

/// The longest response, in bytes of JSON.
const LONGEST_RESPONSE: usize = 256 << 10;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Resolve)]
pub struct Body {
    outcome: Said,
    /// The answer that the run gets, for an effect that happened.
    response: Option<Supplied>,
    /// Why, for whoever reads it later.
    note: String,
    /// Who says so, where a system speaks for a person.
    by: Option<String>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Resolution)]
enum Said {
    Happened,
    DidNotHappen,
    SendAgain,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SuppliedAnswer)]
struct Supplied {
    status: u16,
    #[serde(default)]
    #[schema(value_type = Vec<Vec<String>>)]
    headers: Vec<(String, String)>,
    /// A string is the body as it is; any other JSON value is its own text.
    #[schema(value_type = Option<serde_json::Value>)]
    body: Option<Box<RawValue>>,
}

/// Says what became of an effect whose outcome nobody knows.
#[utoipa::path(
    post, path = "/effects/{effect}/resolve", operation_id = "resolve_effect", tag = "effects",
    request_body = Body, responses((status = 200, body = effects::Effect)), security(("bearer" = ["run"]))
)]
pub async fn resolve(
    State(api): State<Api>,
    Path(effect): Path<String>,
    request: Keyed<scope::Run>,
) -> Result<Response> {
    let prepared = async {
        let effect_id = name::hash(&effect).ok_or_else(unknown)?;
        let resolution = read(&api, &request.caller, effect_id, request.parse(&api)?).await?;
        Ok(Settle { tenant: request.caller.tenant.clone(), token_id: request.caller.token_id, resolution })
    };
    request.carry_out(&api, prepared).await
}

/// Settles an open question.
struct Settle {
    tenant: String,
    token_id: Uuid,
    resolution: Resolution,
}

impl Work for Settle {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        let effect_id = &self.resolution.effect_id;
        match resolution::resolve_in(tx, &self.tenant, &self.resolution, false).await? {
            Resolved::Done(state) => {
                let (effect, state) = (EffectId(*effect_id), state.as_str());
                tracing::info!(effect.id = %effect, effect.state = state, token.id = %self.token_id, "an effect was resolved");
                Ok(Answer::json(StatusCode::OK, &effects::find(tx, &self.tenant, effect_id).await?)?)
            }
            Resolved::Unknown => Err(unknown().into()),
            Resolved::NotOpen(state) => {
                let words = format!("the effect is {}: its outcome is no open question", state.as_str());
                Err(Problem::conflict(words).into())
            }
            Resolved::TooEarly { ms } => Err(too_early(ms).into()),
        }
    }
}

fn unknown() -> Problem {
    Problem::not_found("effect")
}

pub fn too_early(ms: i64) -> Problem {
    Problem::not_yet(format!(
        "its last send may still arrive: say that it did not happen in {} s at the earliest",
        ms.div_euclid(1000) + 1
    ))
}

async fn read(api: &Api, caller: &Caller<scope::Run>, effect_id: [u8; 32], body: Body) -> Result<Resolution> {
    let outcome = match body.outcome {
        Said::Happened => Outcome::Happened,
        Said::DidNotHappen => Outcome::DidNotHappen,
        Said::SendAgain => Outcome::SendAgain,
    };
    if body.note.trim().is_empty() || body.note.len() > LONGEST_NOTE {
        return Err(Problem::validation(format!(
            "note: say in 1 to {LONGEST_NOTE} bytes how you know, for whoever reads it later"
        )));
    }
    let by = body.by.unwrap_or_default();
    if by.len() > 256 {
        return Err(Problem::validation("by: must be at most 256 bytes"));
    }
    let answer = match (outcome, body.response) {
        (Outcome::Happened, response) => Some(supplied(response)?),
        (_, None) => None,
        (_, Some(_)) => return Err(Problem::validation("response: only an effect that happened has one")),
    };
    let sealer = api.gateway.sealer(&caller.tenant).await?;
    let sealed = answer.map(|answer| seal_answer(sealer.as_ref(), &effect_id, answer));
    let by =
        if by.is_empty() { format!("token {}", caller.token_id) } else { format!("{by} (token {})", caller.token_id) };
    let in_flight_ms = api.config.gateway.max_send_ms;
    Ok(Resolution { effect_id, outcome, by, note: body.note, answer: sealed, in_flight_ms })
}

/// Without a response it is a bare success, whose body was not kept.
fn supplied(response: Option<Supplied>) -> Result<effect::Answer> {
    let Supplied { status, headers, body } =
        response.unwrap_or(Supplied { status: 200, headers: Vec::new(), body: None });
    if !(200..=499).contains(&status) {
        return Err(Problem::validation("response.status: must be a final one, 200 to 499"));
    }
    let body = body.map(|raw| serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned()));
    let size = body.as_ref().map_or(0, String::len) + headers.iter().map(|(n, v)| n.len() + v.len()).sum::<usize>();
    if size > LONGEST_RESPONSE {
        return Err(Problem::validation(format!("response: must be at most {LONGEST_RESPONSE} bytes")));
    }
    let headers: Vec<_> =
        headers.into_iter().map(|(name, value)| (name.to_lowercase(), crate::store::storable(&value))).collect();
    Ok(effect::Answer {
        status: i32::from(status),
        headers: serde_json::to_string(&headers).map_err(|e| Problem::internal(e.to_string()))?,
        body: body.map(String::into_bytes),
        source: "supplied".to_owned(),
        sealed_with: None,
    })
}
