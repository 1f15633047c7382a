//! `/v1/runs/{id}/signals`: messages to a run. A key counts once in the life of the run, whatever the signal's name.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Caller, scope};
use super::error::{Problem, Result};
use super::extract::{Json, Path, Query, raw};
use super::keyed::{self, Answer, Failed, Keyed, Work};
use super::page::{self, Asked, Page};
use super::request_key::Handling;
use super::time::Time;
use super::{Api, body, name, request_key, runs};
use crate::gateway::seal_answer;
use crate::store::resolution::{Outcome, Resolved};
use crate::store::signal::{self, Delivered, Delivery, Named, Resolving};
use crate::store::{Tx, effect, run};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Options {
    /// For senders that cannot set a header. The header goes before it; empty is none.
    idempotency_key: Option<String>,
    /// An open effect of the run that the signal settles: its id or its wire key.
    resolves: Option<String>,
    #[param(inline)]
    outcome: Option<Said>,
}

/// What the signal says about the effect.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = SignalOutcome)]
enum Said {
    Happened,
    DidNotHappen,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SignalAnswer)]
pub struct Answered {
    /// False: the key was there already, and nothing was added.
    signal_delivered: bool,
    /// Whether the signal settled the effect. Absent where it named none.
    #[serde(skip_serializing_if = "Option::is_none")]
    effect_resolved: Option<bool>,
}

#[derive(Serialize, ToSchema)]
pub struct Signal {
    sequence: i64,
    name: String,
    #[schema(value_type = Value)]
    payload: Box<RawValue>,
    received_at: Time,
    read: bool,
}

/// Delivers a signal to a run.
///
/// A signal's key is kept with its run, for as long as the run: it has no other record.
#[utoipa::path(
    post, path = "/runs/{run}/signals/{name}", operation_id = "deliver_signal", tag = "signals",
    params(Options),
    request_body(content = Option<Value>, description = "The payload: any JSON value, `null` if absent."),
    responses((status = 202, body = Answered), (status = 429)), security(("bearer" = ["run"]))
)]
pub async fn deliver(
    State(api): State<Api>,
    Path((run, name)): Path<(String, String)>,
    Query(options): Query<Options>,
    request: Keyed<scope::Run, body::Payload>,
) -> Result<Response> {
    let run_id = name::uuid(&run).ok_or_else(runs::unknown)?;
    name::check("signal name", &name)?;
    let idempotency_key = key(&request, options.idempotency_key.as_deref())?;
    let lenient = request.handling == Handling::Lenient;
    let payload = match (request.payload(&api), &idempotency_key) {
        (Ok(payload), _) => payload,
        // Whatever it says: a known key is answered before it is read.
        (Err(problem), Some(key)) if lenient => {
            let known = signal::is_known(&api.store, &request.caller.tenant, run_id, key).await?;
            if known { "null".to_owned() } else { return Err(problem) }
        }
        (Err(problem), _) => return Err(problem),
    };
    let resolving = resolving(&api, &request.caller, &name, &payload, options.resolves, options.outcome).await?;
    let work = Deliver {
        tenant: request.caller.tenant.clone(),
        run_id,
        delivery: Delivery { name, payload, idempotency_key },
        max_unread: api.config.signals.max_unread,
        resolving,
    };
    let mut response = keyed::unkeyed(&api, &request.caller.tenant, &work).await?.response(false);
    if lenient {
        let (name, value) = request_key::APPLIED;
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

/// Delivers one signal.
struct Deliver {
    tenant: String,
    run_id: Uuid,
    delivery: Delivery,
    max_unread: u64,
    resolving: Option<Resolving>,
}

impl Work for Deliver {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        let (tenant, run_id, most) = (self.tenant.as_str(), self.run_id, self.max_unread);
        let resolving = self.resolving.as_ref();
        let done = signal::deliver_resolving(tx, tenant, run_id, &self.delivery, most, resolving).await?;
        let signal_delivered = match done.delivered {
            Delivered::Fresh => true,
            Delivered::Duplicate => false,
            Delivered::Ended => {
                let row = run::find(&mut *tx, tenant, run_id).await?.ok_or_else(runs::unknown)?;
                return Err(Problem::run_terminal(&row.state).into());
            }
            Delivered::Full => {
                let words = format!("the run has {most} unread signals, which is the limit");
                return Err(Problem::rate_limited(words).into());
            }
            Delivered::Unknown => return Err(runs::unknown().into()),
        };
        let effect_resolved = match done.resolved {
            // The first delivery said it.
            None => None,
            Some(Resolved::Done(_)) => Some(true),
            Some(Resolved::NotOpen(_)) => Some(false),
            Some(Resolved::Unknown) => return Err(Problem::not_found("effect of this run").into()),
            Some(Resolved::TooEarly { ms }) => return Err(super::resolve::too_early(ms).into()),
        };
        let answer = Answer::json(StatusCode::ACCEPTED, &Answered { signal_delivered, effect_resolved })?;
        Ok(if signal_delivered { answer } else { answer.repeated() })
    }
}

/// Lists the signals of a run, in the order in which they were received.
#[utoipa::path(
    get, path = "/runs/{run}/signals", operation_id = "list_signals", tag = "signals",
    params(Asked), responses((status = 200, body = Page<Signal>)), security(("bearer" = ["read"]))
)]
pub async fn list(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(run): Path<String>,
    Query(query): Query<Asked>,
) -> Result<Json<Page<Signal>>> {
    let row = runs::find(&api, &caller.tenant, &run).await?;
    let limit = page::limit(query.limit, &api.config.api)?;
    let after = page::number_place(query.after.as_deref())?.unwrap_or(0);
    let rows = signal::list(&api.store, &caller.tenant, row.run_id, after, page::rows(limit)).await?;
    let view = |row: signal::Signal| {
        let payload = raw(row.payload)?;
        Ok(Signal {
            sequence: row.sequence,
            name: row.name,
            payload,
            received_at: row.received_at.into(),
            read: row.read,
        })
    };
    Ok(Json(Page::of(rows, limit, |row| page::number_cursor(row.sequence), view)?))
}

fn key(request: &Keyed<scope::Run, body::Payload>, query: Option<&str>) -> Result<Option<String>> {
    match (request.key(), query) {
        (Some(key), _) => Ok(Some(key.to_owned())),
        (None, None | Some("")) => Ok(None),
        (None, Some(key)) => request_key::check("idempotency_key", key, request.handling).map(Some),
    }
}

async fn resolving(
    api: &Api,
    caller: &Caller<scope::Run>,
    signal: &str,
    payload: &str,
    resolves: Option<String>,
    outcome: Option<Said>,
) -> Result<Option<Resolving>> {
    let Some(named) = resolves else {
        return match outcome {
            None => Ok(None),
            Some(_) => Err(Problem::validation("outcome: say of which effect, with `resolves`")),
        };
    };
    let outcome = match outcome.unwrap_or(Said::Happened) {
        Said::Happened => Outcome::Happened,
        Said::DidNotHappen => Outcome::DidNotHappen,
    };
    let answer = (outcome == Outcome::Happened).then(|| effect::Answer {
        status: 200,
        headers: r#"[["content-type","application/json"]]"#.to_owned(),
        body: Some(payload.as_bytes().to_vec()),
        source: "supplied".to_owned(),
        sealed_with: None,
    });
    if !named.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Problem::validation("resolves: must be an effect's id or its wire key"));
    }
    let named = name::hash(&named).map_or(Named::WireKey(named), Named::Id);
    let sealer = api.gateway.sealer(&caller.tenant).await?;
    Ok(Some(Resolving {
        named,
        outcome,
        by: format!("signal {signal} (token {})", caller.token_id),
        in_flight_ms: api.config.gateway.max_send_ms,
        answer,
        seal: Box::new(move |effect_id, answer| seal_answer(sealer.as_ref(), &effect_id.0, answer)),
    }))
}
