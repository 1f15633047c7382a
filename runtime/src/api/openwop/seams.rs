//! The conformance suite's own routes, for test machines alone: they are there with `api.openwop_seams`, which is off.
//! Each arms or starts what real code then does; none may make an answer that the real code would not give.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use super::runs::Begin;
use super::{effects, fixtures, ids};
use crate::api::auth::{Caller, scope};
use crate::api::error::{Problem, Result};
use crate::api::extract::{Json, Path};
use crate::api::keyed::{Answer, Failed, Keyed, Work};
use crate::api::start::{self, Start};
use crate::api::{Api, request_key, runs as native};
use crate::config::ms;
use crate::key::{self, EffectId, Identity, ProviderAccount};
use crate::store::Tx;

/// The longest hold, in milliseconds.
const MAX_HOLD_MS: u64 = 10_000;

/// Holds that can be armed at once.
const MAX_HOLDS: usize = 1_000;

/// How long the run of the retried effect may take.
const ENDED_WITHIN: Duration = Duration::from_secs(30);

pub fn routes() -> Router<Api> {
    Router::new()
        .route("/conformance/seams/sample/test/idempotency/hold", post(hold))
        .route("/conformance/seams/sample/test/idempotency/effect-retry", post(effect_retry))
        .route("/host/effect-seams", get(manifest))
        // The suite's scenario of the retried effect puts the run's id into the path as it is.
        .route("/runs/{tenant}/{run}/effects", get(unprojected))
}

/// Requests that are to be held once, by tenant and key. The keyed layer asks when it has the turn of a key, and before
/// it does the work, so that another request of the key meets what it would meet when the work took long.
#[derive(Default)]
pub struct Holds(Mutex<HashMap<(String, String), Duration>>);

impl std::fmt::Debug for Holds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holds").finish_non_exhaustive()
    }
}

impl Holds {
    /// Waits as long as the next request of this key was to be held; at once when it was not.
    pub async fn hold(&self, tenant: &str, key: &str) {
        if let Some(time) = self.take(tenant, key) {
            tokio::time::sleep(time).await;
        }
    }

    fn take(&self, tenant: &str, key: &str) -> Option<Duration> {
        let mut armed = self.armed();
        // As it always is on a machine that works.
        if armed.is_empty() { None } else { armed.remove(&(tenant.to_owned(), key.to_owned())) }
    }

    fn arm(&self, tenant: &str, key: &str, time: Duration) -> Result<()> {
        let mut armed = self.armed();
        if armed.len() >= MAX_HOLDS {
            return Err(Problem::rate_limited("too many holds are armed"));
        }
        armed.insert((tenant.to_owned(), key.to_owned()), time);
        Ok(())
    }

    fn armed(&self) -> MutexGuard<'_, HashMap<(String, String), Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Hold {
    key: String,
    hold_ms: u64,
}

async fn hold(State(api): State<Api>, request: Keyed<scope::Run>) -> Result<Response> {
    let prepared = async {
        let hold: Hold = request.parse(&api)?;
        let key = request_key::check("key", &hold.key, request_key::Handling::Strict)?;
        if !(1..=MAX_HOLD_MS).contains(&hold.hold_ms) {
            return Err(Problem::validation(format!("holdMs: must be 1 to {MAX_HOLD_MS}")));
        }
        api.holds.arm(&request.caller.tenant, &key, ms(hold.hold_ms))?;
        Ok(Armed { hold })
    };
    request.carry_out(&api, prepared).await
}

/// Nothing is left to do.
struct Armed {
    hold: Hold,
}

impl Work for Armed {
    async fn run(&self, _tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        Ok(Answer::json(StatusCode::CREATED, &self.hold)?)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Retried {
    provider_url: String,
}

/// Starts a run that posts to the address until it answers, and waits for its end.
async fn effect_retry(State(api): State<Api>, request: Keyed<scope::Run>) -> Result<Response> {
    let tenant = &request.caller.tenant;
    let prepared = async {
        let body: Retried = request.parse(&api)?;
        let origin = origin(&body.provider_url)?;
        fixtures::install_effect_retry(&api.registry, &api.store, tenant, &origin).await?;
        let input = serde_json::value::to_raw_value(&json!({ "providerUrl": body.provider_url }));
        let input = input.map_err(|e| Problem::internal(e.to_string()))?;
        let start = Start::made(input, None, None, BTreeMap::new());
        let run = start::plan(&api, tenant, fixtures::EFFECT_RETRY, start).await?;
        let max_unread = api.config.signals.max_unread;
        Ok(Retry(Begin { tenant: tenant.clone(), run, max_unread, scope: None }))
    };
    let outcome = request.outcome(&api, prepared).await?;
    if let Some(run_id) = outcome.answer.run_id() {
        native::await_end(&api, tenant, run_id, ENDED_WITHIN).await?;
    }
    Ok(outcome.answer.response(outcome.replayed))
}

/// The origin of an address that an effect can be sent to.
fn origin(address: &str) -> Result<String> {
    let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    // The fixture reads the address as it stands in the JSON text.
    let plain = |url: &Url| {
        !address.contains(['"', '\\']) && url.as_str().trim_end_matches('/') == address.trim_end_matches('/')
    };
    match url.filter(plain) {
        Some(url) => Ok(url.origin().ascii_serialization()),
        None => Err(Problem::validation(
            "providerUrl: must be an absolute http or https address, as a client would send it",
        )),
    }
}

struct Retry(Begin);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Started {
    run_id: String,
    effect_id: String,
}

impl Work for Retry {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        self.0.begin(tx).await?;
        let (tenant, run) = (&self.0.tenant, &self.0.run);
        let effect_id = ids::bound(tenant, effect(tenant, run.run_id));
        let answer = Started { run_id: ids::bound(tenant, run.run_id), effect_id };
        Ok(Answer::json(StatusCode::CREATED, &answer)?.of_run(run.run_id))
    }
}

/// The id that the run's effect will have.
fn effect(tenant: &str, run_id: uuid::Uuid) -> EffectId {
    let provider = ProviderAccount { profile: fixtures::PROFILE, account: "" };
    key::effect_id(
        tenant,
        provider,
        Identity::Named { run_id, activity: fixtures::EFFECT_RETRY, name: fixtures::EFFECT },
    )
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    manifest_version: &'static str,
    host: serde_json::Value,
    seams: [Seam; 3],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Seam {
    seam: &'static str,
    kind: &'static str,
    guarded: bool,
    guarded_by: &'static str,
}

/// Every way out of a guest. One thing guards them all.
async fn manifest(_caller: Caller<scope::Read>) -> Json<Manifest> {
    let seam = |seam, kind| Seam { seam, kind, guarded: true, guarded_by: "the claim of the effect in the ledger" };
    let build = format!("v{}", env!("CARGO_PKG_VERSION"));
    Json(Manifest {
        manifest_version: "1",
        host: json!({ "name": "deedbox", "build": { "kind": "commit", "id": build } }),
        seams: [seam("deedbox.http", "http"), seam("deedbox.messaging", "queue"), seam("deedbox.files", "storage")],
    })
}

async fn unprojected(
    state: State<Api>,
    caller: Caller<scope::Read>,
    Path((tenant, run)): Path<(String, String)>,
) -> Result<Json<effects::Witness>> {
    effects::show(state, caller, Path(ids::bound(&tenant, run))).await
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_hold_holds_one_request_of_its_key() {
        let holds = Holds::default();
        holds.arm("acme", "the-key", Duration::from_secs(3)).unwrap();
        assert!(!format!("{holds:?}").contains("the-key"), "keys are shown nowhere");
        let passes = |tenant, key| holds.hold(tenant, key).now_or_never().is_some();
        assert!(passes("other", "the-key") && passes("acme", "another"));
        assert!(!passes("acme", "the-key"));
        assert!(passes("acme", "the-key"), "it was armed once");
    }

    #[test]
    fn an_effect_goes_to_a_plain_address() {
        for good in ["http://127.0.0.1:8080/hook?a=b", "http://127.0.0.1:8080", "http://127.0.0.1:8080/"] {
            assert_eq!(origin(good).unwrap(), "http://127.0.0.1:8080", "{good}");
        }
        for wrong in ["", "hook", "ftp://a/", "http://", "http://a/\"", "http://a/ b", "HTTP://a/"] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }
}
