//! Runs: starting them, looking at one, listing them. A start goes the same way as a native one; what the specification
//! has and this host has not is refused, never dropped.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::run::{RESERVED, SCOPE, Snapshot, TAG};
use super::{discovery, ids};
use crate::api::auth::{Caller, scope};
use crate::api::error::{Problem, Result};
use crate::api::extract::{Json, Path, Query};
use crate::api::keyed::{Answer, Failed, Keyed, Work};
use crate::api::start::{self, Begun, Reused, Start};
use crate::api::{Api, name, page};
use crate::config::ApiConfig;
use crate::store::start::{NewRun, alive};
use crate::store::{Tx, run};

/// Asks that there be no other living run of the scope.
const DEDUP: &str = "openwop-dedup";

/// Asks for events of another engine version: only for keys that are for tests alone, which this host does not mint.
const FORCED_VERSION: &str = "openwop-force-engine-version";

/// The largest page that the specification allows.
const MAX_PAGE: u32 = 1000;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = OpenwopCreateRun)]
pub struct Create {
    /// The activity's name.
    workflow_id: Option<String>,
    /// An object; an empty one if absent.
    #[schema(value_type = Option<Object>)]
    inputs: Option<Box<RawValue>>,
    /// The token's own.
    tenant_id: Option<String>,
    scope_id: Option<String>,
    #[schema(ignore)]
    callback_url: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>)]
    metadata: serde_json::Map<String, Value>,
    #[schema(ignore)]
    residency: Option<IgnoredAny>,
    #[schema(ignore)]
    mode: Option<IgnoredAny>,
    #[schema(ignore)]
    eval_suite_ref: Option<IgnoredAny>,
    #[schema(ignore)]
    agent_id: Option<IgnoredAny>,
    #[schema(ignore)]
    configurable: Option<IgnoredAny>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OpenwopCreatedRun)]
struct Created {
    run_id: String,
    status: &'static str,
    events_url: String,
    status_url: String,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct List {
    limit: Option<u32>,
    cursor: Option<String>,
    /// Other filters are not offered, and the specification wants them passed over.
    workflow_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OpenwopRuns)]
pub struct Runs {
    runs: Vec<Snapshot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// The largest page of this host.
pub fn max_page(config: &ApiConfig) -> u32 {
    config.max_page.min(MAX_PAGE)
}

/// Starts a run.
#[utoipa::path(
    post, path = "/runs", operation_id = "openwop_create_run", tag = "openwop",
    params(
        ("OpenWOP-Dedup" = Option<String>, Header, description = "`enforce`: no other run of the scope may live.")
    ),
    request_body = Create,
    responses(
        (status = 201, body = Created,
            headers(("Location", description = "The path of the run."))),
        (status = 404),
        (status = 422),
        (status = 429)
    ),
    security(("bearer" = ["run"]))
)]
pub async fn create(State(api): State<Api>, headers: HeaderMap, request: Keyed<scope::Run>) -> Result<Response> {
    if headers.contains_key(FORCED_VERSION) {
        return Err(Problem::forced_version());
    }
    let tenant = &request.caller.tenant;
    let prepared = async {
        let enforce = is_enforced(&headers)?;
        let body: Create = request.parse(&api)?;
        body.check(tenant)?;
        let Asked { workflow, inputs, scope, labels } = body.translate(enforce)?;
        let reuse = scope.as_ref().map(|_| Reused::RejectAlive);
        let start = Start::made(inputs, scope.clone(), reuse, labels);
        let run = start::plan(&api, tenant, &workflow, start).await?;
        Ok(Begin { tenant: tenant.clone(), run, max_unread: api.config.signals.max_unread, scope })
    };
    request.carry_out(&api, prepared).await
}

/// A start as the native one wants it.
struct Asked {
    workflow: String,
    /// A JSON object.
    inputs: Box<RawValue>,
    /// The run name that stands for the scope, where it is enforced.
    scope: Option<String>,
    labels: BTreeMap<String, String>,
}

/// Starts one run, if there is none of its scope.
pub struct Begin {
    pub tenant: String,
    pub run: NewRun,
    pub max_unread: u64,
    /// The run name that stands for the scope, where no other run of it may live.
    pub scope: Option<String>,
}

impl Begin {
    /// Starts the run. One of the scope that lives already stands in the way, whatever its workflow.
    pub async fn begin(&self, tx: &mut Tx) -> std::result::Result<(), Failed> {
        if let Some(scope) = &self.scope
            && let Some(other) = alive(tx, &self.tenant, scope).await?
        {
            return Err(Problem::scope_active(ids::bound(&self.tenant, other)).into());
        }
        match start::begin(tx, &self.tenant, &self.run, self.max_unread).await? {
            Begun::Fresh { .. } => Ok(()),
            Begun::Attached { .. } => Err(Problem::internal("a start attached that was not asked to").into()),
        }
    }
}

impl Work for Begin {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        self.begin(tx).await?;
        let (run_id, path) = (self.run.run_id, ids::path(&self.tenant, self.run.run_id));
        let created = Created {
            run_id: ids::bound(&self.tenant, run_id),
            status: "pending",
            events_url: format!("{path}/events"),
            status_url: path.clone(),
        };
        Ok(Answer::json(StatusCode::CREATED, &created)?.located(path).of_run(run_id))
    }

    fn is_single(&self) -> bool {
        self.scope.is_none() && self.run.is_single()
    }

    fn done(&self) {
        tracing::info!(run.id = %self.run.run_id, activity.name = self.run.activity, "started");
    }
}

/// Shows a run.
#[utoipa::path(
    get, path = "/runs/{run}", operation_id = "openwop_show_run", tag = "openwop",
    params(("If-None-Match" = Option<String>, Header, description = "The ETag of what the caller has.")),
    responses(
        (status = 200, body = Snapshot,
            headers(("ETag", description = "Changes when the answer does."))),
        (status = 304)
    ),
    security(("bearer" = ["read"]))
)]
pub async fn show(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(segment): Path<String>,
    headers: HeaderMap,
) -> Result<Response> {
    let row = find(&api, &caller.tenant, ids::run(&segment, &caller.tenant)?).await?;
    discovery::tagged(&headers, &Snapshot::new(&caller.tenant, row)?)
}

/// Lists the runs, newest first.
#[utoipa::path(
    get, path = "/runs", operation_id = "openwop_list_runs", tag = "openwop",
    params(List), responses((status = 200, body = Runs)), security(("bearer" = ["read"]))
)]
pub async fn list(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Query(query): Query<List>,
) -> Result<Json<Runs>> {
    let limit = page::limit(query.limit, &api.config.api)?.min(max_page(&api.config.api) as usize);
    let wrong = |_| Problem::validation("cursor: must be a nextCursor that this list has given");
    let after = page::place(query.cursor.as_deref()).map_err(wrong)?;
    if query.workflow_id.as_deref().is_some_and(|workflow| name::check("workflowId", workflow).is_err()) {
        return Ok(Json(Runs { runs: Vec::new(), next_cursor: None }));
    }
    let filter = run::Filter { activity: query.workflow_id, after, limit: page::rows(limit), ..run::Filter::default() };
    let mut rows = run::list(&api.store, &caller.tenant, &filter).await?;
    let more = page::cut(&mut rows, limit);
    let next_cursor = rows.last().filter(|_| more).map(|row| page::cursor(row.created_at, &row.run_id));
    let runs = rows.into_iter().map(|row| Snapshot::new(&caller.tenant, row)).collect::<Result<_>>()?;
    Ok(Json(Runs { runs, next_cursor }))
}

pub async fn find(api: &Api, tenant: &str, run_id: Uuid) -> Result<run::Run> {
    run::find(&api.store, tenant, run_id).await?.ok_or_else(ids::unknown)
}

/// Whether the caller wants no second run of the scope.
fn is_enforced(headers: &HeaderMap) -> Result<bool> {
    let mut all = headers.get_all(DEDUP).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(false),
        (Some(one), None) if one == "enforce" => Ok(true),
        _ => Err(Problem::validation("OpenWOP-Dedup: must be one header with the value `enforce`")),
    }
}

impl Create {
    /// Refuses what is another tenant's, and what this host does not have.
    fn check(&self, tenant: &str) -> Result<()> {
        if self.tenant_id.as_ref().is_some_and(|id| id != tenant) {
            return Err(Problem::tenant_mismatch());
        }
        // It carries interrupts, which are not offered; and a native callback is signed with a secret that a start
        // names.
        if self.callback_url.is_some() {
            return Err(Problem::field("callbackUrl", "this host does not call back; follow the run's events"));
        }
        let lacking = [
            ("residency", self.residency.is_some()),
            ("mode", self.mode.is_some()),
            ("evalSuiteRef", self.eval_suite_ref.is_some()),
            ("agentId", self.agent_id.is_some()),
            ("configurable", self.configurable.is_some()),
        ];
        match lacking.into_iter().find(|(_, is_there)| *is_there) {
            Some((field, _)) => Err(Problem::not_provided(field)),
            None => Ok(()),
        }
    }

    fn translate(self, enforce: bool) -> Result<Asked> {
        let workflow = self.workflow_id.ok_or_else(|| Problem::validation("workflowId: must name an activity"))?;
        let inputs = self.inputs.map_or_else(|| RawValue::from_string("{}".to_owned()), Ok);
        let inputs = inputs.map_err(|e| Problem::internal(e.to_string()))?;
        if !inputs.get().starts_with('{') {
            return Err(Problem::validation("inputs: must be a JSON object"));
        }
        let scope = self.scope_id.as_ref().filter(|_| enforce).map(|scope| format!("{SCOPE}:{scope}"));
        Ok(Asked { workflow, inputs, scope, labels: labels(self.tags, self.metadata, self.scope_id)? })
    }
}

/// Tags, metadata and scope as labels. What no label can be is refused with its name.
fn labels(
    tags: Vec<String>,
    metadata: serde_json::Map<String, Value>,
    scope: Option<String>,
) -> Result<BTreeMap<String, String>> {
    let mut labels: BTreeMap<String, String> =
        tags.into_iter().enumerate().map(|(number, tag)| (format!("{TAG}{number}"), tag)).collect();
    labels.extend(scope.map(|scope| (SCOPE.to_owned(), scope)));
    for (name, value) in metadata {
        if name.starts_with(RESERVED) {
            return Err(Problem::validation(format!("metadata: names must not begin with `{RESERVED}`")));
        }
        let Value::String(text) = value else {
            return Err(Problem::validation(format!("metadata.{name}: this host keeps texts only")));
        };
        labels.insert(name, text);
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(fields: Value) -> Create {
        // As a request is read: raw values need a text.
        serde_json::from_str(&fields.to_string()).unwrap()
    }

    fn refusal(result: Result<impl Sized>) -> String {
        result.map(drop).map_or_else(|problem| format!("{problem:?}"), |()| "taken".to_owned())
    }

    #[test]
    fn what_this_host_lacks_is_refused_by_its_name() {
        for field in ["residency", "mode", "evalSuiteRef", "agentId", "configurable"] {
            let words = refusal(body(json!({ "workflowId": "a", field: {} })).check("acme"));
            assert!(words.contains("NotProvided") && words.contains(field), "{words}");
            assert_eq!(refusal(body(json!({ "workflowId": "a", field: null })).check("acme")), "taken");
        }
        let words = refusal(body(json!({ "workflowId": "a", "callbackUrl": "https://example.com/" })).check("acme"));
        assert!(words.contains("Validation") && words.contains("callbackUrl"), "{words}");
        assert!(refusal(body(json!({ "tenantId": "other" })).check("acme")).contains("TenantMismatch"));
        assert_eq!(refusal(body(json!({ "tenantId": "acme" })).check("acme")), "taken");
        assert!(serde_json::from_str::<Create>(r#"{"workflowId":"a","else":1}"#).is_err());
    }

    #[test]
    fn a_start_is_translated() {
        let fields = json!({ "workflowId": "a", "scopeId": "s", "tags": ["x", "y"], "metadata": { "team": "red" } });
        let asked = body(fields.clone()).translate(false).unwrap();
        assert_eq!((asked.workflow.as_str(), asked.inputs.get(), asked.scope), ("a", "{}", None));
        let labels = json!({ "openwop.tag.0": "x", "openwop.tag.1": "y", "openwop.scope": "s", "team": "red" });
        assert_eq!(json!(asked.labels), labels);
        assert_eq!(body(fields).translate(true).unwrap().scope.as_deref(), Some("openwop.scope:s"));
        for wrong in [
            json!({}),
            json!({ "workflowId": "a", "inputs": [1] }),
            json!({ "workflowId": "a", "metadata": { "n": 1 } }),
            json!({ "workflowId": "a", "metadata": { "openwop.scope": "x" } }),
        ] {
            assert!(refusal(body(wrong.clone()).translate(false)).contains("Validation"), "{wrong}");
        }
    }

    #[test]
    fn the_scope_is_enforced_by_one_word() {
        let read = |values: &[&str]| {
            let pairs = values.iter().map(|value| (DEDUP.parse().unwrap(), value.parse().unwrap()));
            let mut headers = HeaderMap::new();
            pairs.for_each(|(name, value): (axum::http::HeaderName, axum::http::HeaderValue)| {
                headers.append(name, value);
            });
            is_enforced(&headers).ok()
        };
        assert_eq!(read(&[]), Some(false));
        assert_eq!(read(&["enforce"]), Some(true));
        assert_eq!((read(&["yes"]), read(&["enforce", "enforce"])), (None, None));
    }
}
