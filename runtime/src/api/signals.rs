//! `/v1/runs/{id}/signals`: messages to a run. A key counts once in the life of the run, whatever the signal's name.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::auth::Caller;
use super::error::{Problem, Result};
use super::extract::{Json, Path, Payload, Query, raw};
use super::page::{self, Page};
use super::time::Time;
use super::{Api, name, request_key, runs};
use crate::store::effect::Answer;
use crate::store::resolution::{Outcome, Resolved};
use crate::store::signal::{self, Delivered, Delivery, Named, Resolving};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// For senders that cannot set a header. The header goes before it; empty is none.
    idempotency_key: Option<String>,
    /// An open effect of the run that the signal settles: its id or its wire key.
    resolves: Option<String>,
    outcome: Option<Said>,
}

/// What the signal says about the effect.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Said {
    Happened,
    DidNotHappen,
}

#[derive(Serialize)]
pub struct Answered {
    /// False: the key was there already, and nothing was added.
    signal_delivered: bool,
    /// Whether the signal settled the effect. Absent where it named none.
    #[serde(skip_serializing_if = "Option::is_none")]
    effect_resolved: Option<bool>,
}

#[derive(Serialize)]
pub struct Signal {
    sequence: i64,
    name: String,
    payload: Box<RawValue>,
    received_at: Time,
    read: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    after: Option<String>,
    limit: Option<u32>,
}

pub async fn deliver(
    State(api): State<Api>,
    caller: Caller,
    Path((run, name)): Path<(String, String)>,
    Query(options): Query<Options>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<(StatusCode, Json<Answered>)> {
    let run_id = name::uuid(&run).ok_or_else(runs::unknown)?;
    name::check("signal name", &name)?;
    let idempotency_key = key(&headers, options.idempotency_key.as_deref())?;
    let resolving = resolving(&api, &caller, &name, &payload.0, options.resolves, options.outcome)?;
    let delivery = Delivery { name, payload: payload.0, idempotency_key };
    let most = api.config.signals.max_unread;
    let done = signal::deliver(&api.store, &caller.tenant, run_id, &delivery, most, resolving.as_ref()).await?;
    let signal_delivered = match done.delivered {
        Delivered::Fresh => true,
        Delivered::Duplicate => false,
        Delivered::Ended => {
            let row = runs::find(&api, &caller.tenant, &run).await?;
            return Err(Problem::run_terminal(&row.state));
        }
        Delivered::Full => {
            return Err(Problem::rate_limited(format!("the run has {most} unread signals, which is the limit")));
        }
        Delivered::Unknown => return Err(runs::unknown()),
    };
    let effect_resolved = match done.resolved {
        None => resolving.map(|_| false),
        Some(Resolved::Done(_)) => Some(true),
        Some(Resolved::NotOpen(_)) => Some(false),
        Some(Resolved::Unknown) => return Err(Problem::not_found("effect of this run")),
        Some(Resolved::TooEarly { ms }) => return Err(super::resolve::too_early(ms)),
    };
    Ok((StatusCode::ACCEPTED, Json(Answered { signal_delivered, effect_resolved })))
}

/// In the order in which they were received.
pub async fn list(
    State(api): State<Api>,
    caller: Caller,
    Path(run): Path<String>,
    Query(query): Query<List>,
) -> Result<Json<Page<Signal>>> {
    let row = runs::find(&api, &caller.tenant, &run).await?;
    let limit = page::limit(query.limit, &api.config.api)?;
    let wrong = |_| Problem::validation("after: must be a cursor that this list has given");
    let after = query.after.map_or(Ok(0), |after| after.parse::<u32>().map(i64::from)).map_err(wrong)?;
    let mut rows = signal::list(&api.store, &caller.tenant, row.run_id, after, page::rows(limit)).await?;
    let more = page::cut(&mut rows, limit);
    let after = rows.last().filter(|_| more).map(|row| row.sequence.to_string());
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
    Ok(Json(Page { items: rows.into_iter().map(view).collect::<Result<_>>()?, after }))
}

fn key(headers: &HeaderMap, query: Option<&str>) -> Result<Option<String>> {
    match (request_key::of(headers)?, query) {
        (Some(key), _) => Ok(Some(key)),
        (None, None | Some("")) => Ok(None),
        (None, Some(key)) => request_key::check("idempotency_key", key).map(Some),
    }
}

fn resolving(
    api: &Api,
    caller: &Caller,
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
    let answer = (outcome == Outcome::Happened).then(|| Answer {
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
    let (gateway, tenant) = (api.gateway.clone(), caller.tenant.clone());
    Ok(Some(Resolving {
        named,
        outcome,
        by: format!("signal {signal} (token {})", caller.token_id),
        in_flight_ms: api.config.gateway.max_send_ms,
        answer,
        seal: Box::new(move |effect_id, answer| gateway.seal_answer(&tenant, &effect_id.0, answer)),
    }))
}
