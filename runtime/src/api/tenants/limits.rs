//! `/v1/tenants/{tenant}/limits`: what bounds a tenant. Where each limit holds is elsewhere: what runs at once in `store::lease`, the
//! queue in `store::start`, modules in `store::module`, deployments in `ceilings` and `signatures`, runs under way in `gateway` and
//! `worker`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{known, unknown};
use crate::api::Api;
use crate::api::auth::{Caller, scope};
use crate::api::error::{Problem, Result};
use crate::api::extract::{Json, Path, stored};
use crate::api::keyed::{Answer, Failed, Keyed, Work};
use crate::gateway::Gateway;
use crate::policy::Ceiling;
use crate::store::{self, Tx};

/// The longest `max_attempt_ms`, as long as the longest time-out of a policy.
const LONGEST_ATTEMPT_MS: u64 = 30 * 24 * 3600 * 1000;

const MOST_SENDS_PER_S: f64 = 1_000_000.0;

/// What bounds a tenant. Absent: no limit.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TenantLimits)]
pub struct Limits {
    /// Runs at once, on all nodes together; more stay queued.
    max_running: Option<u32>,
    /// Runs that are queued or wait; more are not started.
    max_queued: Option<u32>,
    max_modules: Option<u32>,
    /// Bytes of all modules together.
    max_module_bytes: Option<u64>,
    /// Linear memory of one attempt.
    max_memory_bytes: Option<u64>,
    /// One attempt, from when its module is ready to its end.
    max_attempt_ms: Option<u64>,
    /// Requests and messages in a second, to all providers together.
    max_sends_per_s: Option<f64>,
    /// CPU time of one attempt.
    max_cpu_ms: Option<u64>,
    /// Calls of one attempt to the host, in all and in a second.
    max_host_calls: Option<u64>,
    max_host_calls_per_s: Option<u64>,
    /// What is kept of each of stdout and stderr of one attempt.
    max_log_bytes: Option<u64>,
    /// Of one run.
    max_output_bytes: Option<u64>,
    /// Sends that one attempt may have under way at once.
    max_open_sends: Option<u64>,
    /// Where deployments may send at most: hosts (`api.example.com`, `*.example.com`) and origins (`https://api.example.com:8443`).
    egress: Option<Ceiling>,
    /// Modules are deployed only with a signature of one of the tenant's signers.
    #[serde(default)]
    require_signature: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = TenantBounds)]
pub struct Bounds {
    #[serde(flatten)]
    limits: Limits,
    paused: bool,
}

/// Shows what bounds a tenant.
#[utoipa::path(
    get, path = "/tenants/{tenant}/limits", operation_id = "show_limits", tag = "tenants",
    responses((status = 200, body = Bounds)), security(("bearer" = ["admin"]))
)]
pub async fn show(State(api): State<Api>, _: Caller<scope::Admin>, Path(tenant): Path<String>) -> Result<Json<Bounds>> {
    known(&tenant)?;
    let row = store::tenant::limits(&api.store, &tenant).await?;
    Ok(Json(view(row.ok_or_else(unknown)?)?))
}

/// Replaces all limits of a tenant.
#[utoipa::path(
    put, path = "/tenants/{tenant}/limits", operation_id = "set_limits", tag = "tenants",
    request_body = Limits, responses((status = 200, body = Bounds)), security(("bearer" = ["admin"]))
)]
pub async fn set(State(api): State<Api>, Path(tenant): Path<String>, request: Keyed<scope::Admin>) -> Result<Response> {
    request
        .carry_out(&api, async {
            known(&tenant)?;
            let limits = checked(request.parse(&api)?)?;
            Ok(SetLimits { gateway: api.gateway.clone(), tenant, limits })
        })
        .await
}

struct SetLimits {
    gateway: Arc<Gateway>,
    tenant: String,
    limits: store::tenant::Limits,
}

impl Work for SetLimits {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        if !store::tenant::set_limits(&mut *tx, &self.tenant, &self.limits).await? {
            return Err(unknown().into());
        }
        let row = store::tenant::limits(tx, &self.tenant).await?;
        Ok(Answer::json(StatusCode::OK, &view(row.ok_or_else(unknown)?)?)?)
    }

    /// The other nodes read them again within seconds.
    fn done(&self) {
        self.gateway.forget_limits(&self.tenant);
    }
}

fn checked(limits: Limits) -> Result<store::tenant::Limits> {
    let egress = limits.egress.as_ref().map(serde_json::to_string).transpose();
    if limits.max_sends_per_s.is_some_and(|most| !(f64::MIN_POSITIVE..=MOST_SENDS_PER_S).contains(&most)) {
        return Err(Problem::validation(format!("max_sends_per_s: must be above 0 and at most {MOST_SENDS_PER_S}")));
    }
    within("max_memory_bytes", limits.max_memory_bytes, i64::MAX.unsigned_abs())?;
    within("max_attempt_ms", limits.max_attempt_ms, LONGEST_ATTEMPT_MS)?;
    for (field, most) in [
        ("max_cpu_ms", limits.max_cpu_ms),
        ("max_host_calls", limits.max_host_calls),
        ("max_host_calls_per_s", limits.max_host_calls_per_s),
        ("max_log_bytes", limits.max_log_bytes),
        ("max_output_bytes", limits.max_output_bytes),
        ("max_open_sends", limits.max_open_sends),
    ] {
        within(field, most, i64::MAX.unsigned_abs())?;
    }
    Ok(store::tenant::Limits {
        max_running: narrowed("max_running", limits.max_running)?,
        max_queued: narrowed("max_queued", limits.max_queued)?,
        max_modules: narrowed("max_modules", limits.max_modules)?,
        max_module_bytes: narrowed("max_module_bytes", limits.max_module_bytes)?,
        max_memory_bytes: narrowed("max_memory_bytes", limits.max_memory_bytes)?,
        max_attempt_ms: narrowed("max_attempt_ms", limits.max_attempt_ms)?,
        max_sends_per_s: limits.max_sends_per_s,
        max_cpu_ms: narrowed("max_cpu_ms", limits.max_cpu_ms)?,
        max_host_calls: narrowed("max_host_calls", limits.max_host_calls)?,
        max_host_calls_per_s: narrowed("max_host_calls_per_s", limits.max_host_calls_per_s)?,
        max_log_bytes: narrowed("max_log_bytes", limits.max_log_bytes)?,
        max_output_bytes: narrowed("max_output_bytes", limits.max_output_bytes)?,
        max_open_sends: narrowed("max_open_sends", limits.max_open_sends)?,
        egress: egress.map_err(|e| Problem::internal(format!("a limit cannot be written: {e}")))?,
        require_signature: limits.require_signature,
        paused: false,
    })
}

/// With none of it nothing would run at all, which `max_running` says better.
fn within(field: &str, value: Option<u64>, most: u64) -> Result<()> {
    match value {
        Some(value) if !(1..=most).contains(&value) => {
            Err(Problem::validation(format!("{field}: must be 1 to {most}")))
        }
        _ => Ok(()),
    }
}

/// PostgreSQL has no unsigned integers.
fn narrowed<F, T: TryFrom<F>>(field: &str, value: Option<F>) -> Result<Option<T>> {
    value.map(T::try_from).transpose().map_err(|_| Problem::validation(format!("{field}: is too large")))
}

fn view(row: store::tenant::Limits) -> Result<Bounds> {
    let large = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
    let small = |number: Option<i32>| number.and_then(|number| u32::try_from(number).ok());
    let limits = Limits {
        max_running: small(row.max_running),
        max_queued: small(row.max_queued),
        max_modules: small(row.max_modules),
        max_module_bytes: large(row.max_module_bytes),
        max_memory_bytes: large(row.max_memory_bytes),
        max_attempt_ms: large(row.max_attempt_ms),
        max_sends_per_s: row.max_sends_per_s,
        max_cpu_ms: large(row.max_cpu_ms),
        max_host_calls: large(row.max_host_calls),
        max_host_calls_per_s: large(row.max_host_calls_per_s),
        max_log_bytes: large(row.max_log_bytes),
        max_output_bytes: large(row.max_output_bytes),
        max_open_sends: large(row.max_open_sends),
        egress: row.egress.as_deref().map(stored).transpose()?,
        require_signature: row.require_signature,
    };
    Ok(Bounds { limits, paused: row.paused })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str) -> Option<String> {
        checked(serde_json::from_str(json).unwrap()).err().map(|problem| format!("{problem:?}"))
    }

    #[test]
    fn a_limit_that_cannot_be_is_refused_by_its_name() {
        for (json, field) in [
            (r#"{"max_running": 2147483648}"#, "max_running"),
            (r#"{"max_queued": 4294967295}"#, "max_queued"),
            (r#"{"max_module_bytes": 18446744073709551615}"#, "max_module_bytes"),
            (r#"{"max_memory_bytes": 0}"#, "max_memory_bytes"),
            (r#"{"max_attempt_ms": 0}"#, "max_attempt_ms"),
            (r#"{"max_attempt_ms": 2592000001}"#, "max_attempt_ms"),
            (r#"{"max_cpu_ms": 0}"#, "max_cpu_ms"),
            (r#"{"max_host_calls": 9223372036854775808}"#, "max_host_calls"),
            (r#"{"max_open_sends": 0}"#, "max_open_sends"),
            (r#"{"max_sends_per_s": 0}"#, "max_sends_per_s"),
            (r#"{"max_sends_per_s": -1.5}"#, "max_sends_per_s"),
            (r#"{"max_sends_per_s": 1e300}"#, "max_sends_per_s"),
        ] {
            assert!(refusal(json).is_some_and(|words| words.contains(field)), "{json}");
        }
        for json in ["{}", r#"{"max_running": 0, "max_queued": 0, "max_modules": 0, "max_module_bytes": 0}"#] {
            assert_eq!(refusal(json), None, "{json}");
        }
    }

    #[test]
    fn limits_are_shown_as_they_were_set() {
        let json = r#"{"max_running":1,"max_queued":2,"max_modules":3,"max_module_bytes":4,"max_memory_bytes":5,"max_attempt_ms":6,"max_sends_per_s":0.5,"max_cpu_ms":7,"max_host_calls":8,"max_host_calls_per_s":9,"max_log_bytes":10,"max_output_bytes":11,"max_open_sends":12,"egress":["a.test"],"require_signature":true}"#;
        let row = checked(serde_json::from_str(json).unwrap()).unwrap();
        let shown = serde_json::to_string(&view(row).unwrap()).unwrap();
        assert_eq!(shown, json.replace("true}", r#"true,"paused":false}"#));
    }
}
