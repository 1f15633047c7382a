//! `/v1/activities`: deployments. Each makes a version, which never changes.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::actor::Actor;
use super::auth::{Caller, scope};
use super::error::{Problem, Result};
use super::extract::{Json, Path, Query, raw};
use super::keyed::{Answer, Failed, Keyed, Work};
use super::page::{self, Asked, Page};
use super::signatures::{self, Signed};
use super::time::Time;
use super::{Api, body, ceilings, input, modules, name};
use crate::gateway::check_ca;
use crate::gateway::provider::{Profiles, UNLISTED};
use crate::policy::Policy;
use crate::store::provenance::By;
use crate::store::{self, Tx, activity};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DeployActivity)]
pub struct Deploy {
    /// The module's digest.
    module: String,
    export: Option<String>,
    #[schema(value_type = Option<Policy>)]
    policy: Option<Box<RawValue>>,
    /// The number that the version must get: one more than the newest has, or the newest's own where that is this deployment.
    #[schema(minimum = 1)]
    version: Option<i32>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ActivityVersion)]
pub struct Version {
    activity: String,
    version: i32,
    module: String,
    export: String,
    #[schema(value_type = Policy)]
    policy: Box<RawValue>,
    created_at: Time,
    deployed_by: Actor,
    /// The signature that the deployment rests on; null: the module had none that counted.
    signed_by: Option<Signed>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ActivityVersions)]
pub struct Versions {
    activity: String,
    paused: bool,
    versions: Vec<Version>,
    /// The cursor for the older ones; absent at the end.
    after: Option<String>,
}

/// Deploys an activity. Each deployment makes a version, which never changes; new runs have the newest one.
#[utoipa::path(
    put, path = "/activities/{name}", operation_id = "deploy_activity", tag = "activities",
    request_body = Deploy,
    responses(
        (status = 201, body = Version),
        (status = 200, body = Version, description = "The newest version is the one that was asked for by its number.")
    ),
    security(("bearer" = ["deploy"]))
)]
pub async fn deploy(
    State(api): State<Api>,
    Path(name): Path<String>,
    request: Keyed<scope::Deploy>,
) -> Result<Response> {
    let prepared = async {
        name::check("activity name", &name)?;
        let tenant = request.caller.tenant.clone();
        let body: Deploy = request.parse(&api)?;
        let policy = check_policy(&api, &tenant, body.policy.as_deref().map_or("{}", RawValue::get)).await?;
        let digest = name::hash(&body.module).ok_or_else(|| no_module(&body.module))?;
        let module = store::module::find(&api.store, &tenant, &digest).await?;
        let module = module.ok_or_else(|| no_module(&body.module))?;
        let export = choose_export(&name, body.export, modules::exports(&module)?)?;
        // It becomes the newest only if it can be run: what was taken by another version of this host may not link.
        api.registry.load(&tenant, digest).await?;
        let by = request.caller.by();
        Ok(Deployment {
            tenant,
            activity: name,
            module: body.module,
            digest,
            export,
            policy,
            by,
            version: body.version,
        })
    };
    request.carry_out(&api, prepared).await
}

/// Makes the next version of an activity.
struct Deployment {
    tenant: String,
    activity: String,
    module: String,
    digest: [u8; 32],
    export: String,
    policy: CheckedPolicy,
    by: By,
    version: Option<i32>,
}

impl Deployment {
    /// The newest version, if it is the one that was asked for by its number and says the same. Fails where the next one
    /// would have another number.
    async fn known(&self, tx: &mut Tx, wanted: i32) -> std::result::Result<Option<activity::Version>, Failed> {
        let head = activity::hold(tx, &self.tenant, &self.activity).await?;
        let next = head.latest.saturating_add(1);
        if wanted == next {
            return Ok(None);
        }
        let row = activity::find(&mut *tx, &self.tenant, &self.activity, head.latest).await?;
        match row.filter(|row| row.version == wanted && !head.retired && self.is(row)) {
            Some(row) => Ok(Some(row)),
            None => {
                let words = format!("version: the next one of `{}` is {next}, and {wanted} is not this", self.activity);
                Err(Problem::conflict(words).into())
            }
        }
    }

    fn is(&self, row: &activity::Version) -> bool {
        (&row.digest[..], &row.export, &row.policy) == (&self.digest[..], &self.export, &self.policy.text)
    }
}

impl Work for Deployment {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        if let Some(wanted) = self.version
            && let Some(row) = self.known(tx, wanted).await?
        {
            return Ok(Answer::json(StatusCode::OK, &view(row)?)?);
        }
        let signed = signatures::admitted(tx, &self.tenant, &self.digest).await?;
        let new = activity::NewVersion {
            activity: &self.activity,
            digest: &self.digest,
            export: &self.export,
            policy: &self.policy.text,
            max_running: self.policy.max_running,
            by: &self.by,
            signed: signed.as_ref(),
        };
        let number = match activity::deploy(&mut *tx, &self.tenant, new).await {
            Err(error) if error.violates("activity_versions_module") => return Err(no_module(&self.module).into()),
            number => number?,
        };
        let row = activity::find(&mut *tx, &self.tenant, &self.activity, number).await?;
        let row = row.ok_or_else(|| Problem::internal("a version is gone that was just deployed"))?;
        tracing::info!(activity.name = self.activity, activity.version = number, "deployed");
        Ok(Answer::json(StatusCode::CREATED, &view(row)?)?)
    }
}

/// Lists the activities by name, each with its newest version.
#[utoipa::path(
    get, path = "/activities", operation_id = "list_activities", tag = "activities",
    params(Asked), responses((status = 200, body = Page<Version>)), security(("bearer" = ["read"]))
)]
pub async fn list(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Query(asked): Query<Asked>,
) -> Result<Json<Page<Version>>> {
    let limit = page::limit(asked.limit, &api.config.api)?;
    let after = page::name_place(asked.after.as_deref())?;
    let rows = activity::list(&api.store, &caller.tenant, after.as_deref(), page::rows(limit)).await?;
    Ok(Json(Page::of(rows, limit, |row| page::name_cursor(&row.activity), view)?))
}

/// Lists the versions of an activity, newest first. Also those of a retired activity, whose runs go on.
#[utoipa::path(
    get, path = "/activities/{name}", operation_id = "show_activity", tag = "activities",
    params(Asked), responses((status = 200, body = Versions)), security(("bearer" = ["read"]))
)]
pub async fn show(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Json<Versions>> {
    known(&name)?;
    let limit = page::limit(asked.limit, &api.config.api)?;
    let before = page::number_place(asked.after.as_deref())?;
    let rows = activity::list_versions(&api.store, &caller.tenant, &name, before, page::rows(limit)).await?;
    // The first version is behind every cursor that a list has given.
    if rows.is_empty() {
        return Err(unknown());
    }
    let paused = activity::is_paused(&api.store, &caller.tenant, &name).await?;
    let Page { items, after } = Page::of(rows, limit, |row| page::number_cursor(row.version), view)?;
    Ok(Json(Versions { activity: name, paused, versions: items, after }))
}

/// Retires an activity. It has no new runs until it is deployed again.
#[utoipa::path(
    delete, path = "/activities/{name}", operation_id = "retire_activity", tag = "activities",
    responses((status = 204)), security(("bearer" = ["deploy"]))
)]
pub async fn retire(
    State(api): State<Api>,
    Path(name): Path<String>,
    request: Keyed<scope::Deploy, body::Nothing>,
) -> Result<Response> {
    let prepared = async {
        known(&name)?;
        Ok(Retirement { tenant: request.caller.tenant.clone(), activity: name })
    };
    request.carry_out(&api, prepared).await
}

/// Retires an activity: no new runs.
struct Retirement {
    tenant: String,
    activity: String,
}

impl Work for Retirement {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match activity::retire(tx, &self.tenant, &self.activity).await? {
            true => Ok(Answer::nothing()),
            false => Err(unknown().into()),
        }
    }

    fn is_single(&self) -> bool {
        true
    }
}

/// A name that no activity can have names none.
pub fn known(name: &str) -> Result<()> {
    name::check("activity name", name).map_err(|_| unknown())
}

pub fn unknown() -> Problem {
    Problem::not_found("activity")
}

/// A policy that may be stored.
struct CheckedPolicy {
    /// A JSON text with all defaults filled in.
    text: String,
    max_running: Option<i32>,
}

async fn check_policy(api: &Api, tenant: &str, json: &str) -> Result<CheckedPolicy> {
    if !json.starts_with('{') {
        return Err(Problem::validation("policy: must be a JSON object"));
    }
    let mut policy = Policy::parse(json).map_err(Problem::validation)?;
    ceilings::check_host(&policy.limits, &api.config)?;
    let ca = policy.egress.ca.as_deref().map_or(Ok(()), check_ca);
    ca.map_err(|why| Problem::validation(format!("policy.egress.ca: {why}")))?;
    policy.input_schema.as_ref().map_or(Ok(()), input::check_schema)?;
    ceilings::check(&policy, json, &api.gateway.read_limits(tenant).await?)?;
    let own = api.gateway.profiles_of(tenant).await?;
    for profile in policy.providers.values() {
        check_provider(api, &own, "policy.providers", profile)?;
    }
    name_providers(api, &own, &mut policy);
    for (profile, credential) in &policy.credentials {
        check_provider(api, &own, "policy.credentials", profile)?;
        name::check(&format!("policy.credentials.{profile}.secret"), &credential.secret)?;
        name::check(&format!("policy.credentials.{profile}.account"), &credential.account)?;
    }
    let text =
        serde_json::to_string(&policy).map_err(|e| Problem::internal(format!("a policy cannot be written: {e}")))?;
    let max_running = policy.limits.max_running.and_then(|most| i32::try_from(most).ok());
    Ok(CheckedPolicy { text, max_running })
}

/// Settles which profile speaks for every origin that is named; those that only a wildcard allows have none. Its name is a
/// part of an effect's identity: a profile that is put later, or that comes with a newer program, must not give the effects
/// of this version another one.
fn name_providers(api: &Api, own: &Profiles, policy: &mut Policy) {
    for origin in policy.egress.origins() {
        if policy.provider_at(&origin).is_none() {
            let found = own.at(&origin).or_else(|| api.gateway.profiles().at(&origin));
            let name = found.map_or(UNLISTED, |profile| profile.name.0.as_str());
            policy.providers.insert(origin.to_string(), name.to_owned());
        }
    }
}

fn check_provider(api: &Api, own: &Profiles, field: &str, profile: &str) -> Result<()> {
    let shipped = api.gateway.profiles();
    if own.get(profile).is_some() || shipped.get(profile).is_some() {
        return Ok(());
    }
    let known: Vec<_> = own.all().chain(shipped.all()).map(|known| known.name.0.as_str()).collect();
    let known = known.join(", ");
    Err(Problem::validation(format!("{field}: no provider is named `{profile}`; there are: {known}")))
}

/// The export that was asked for; else the one named like the activity; else the only one.
fn choose_export(activity: &str, asked: Option<String>, exports: Vec<String>) -> Result<String> {
    let wanted = asked.as_deref().unwrap_or(activity);
    match exports.as_slice() {
        _ if exports.iter().any(|export| export == wanted) => Ok(wanted.to_owned()),
        [only] if asked.is_none() => Ok(only.clone()),
        _ => {
            let all = exports.join(", ");
            Err(Problem::validation(format!("export: the module has no activity `{wanted}`; it has: {all}")))
        }
    }
}

fn no_module(digest: &str) -> Problem {
    let shown: String = digest.chars().take(64).collect();
    Problem::validation(format!("module: there is no module `{shown}`; upload it with POST /v1/modules first"))
}

fn view(row: activity::Version) -> Result<Version> {
    Ok(Version {
        activity: row.activity,
        version: row.version,
        module: name::hex(&row.digest),
        export: row.export,
        policy: raw(row.policy)?,
        created_at: row.created_at.into(),
        deployed_by: Actor::recorded(&row.by_kind, row.by_token, row.by_label),
        signed_by: signatures::recorded(row.signer, row.signer_key),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(asked: Option<&str>, exports: &[&str]) -> Option<String> {
        let exports = exports.iter().map(|&e| e.to_owned()).collect();
        choose_export("charge", asked.map(str::to_owned), exports).ok()
    }

    #[test]
    fn an_export_is_asked_for_or_named_alike_or_the_only_one() {
        assert_eq!(choose(Some("b"), &["a", "b"]).as_deref(), Some("b"));
        assert_eq!(choose(None, &["a", "charge"]).as_deref(), Some("charge"));
        assert_eq!(choose(None, &["a"]).as_deref(), Some("a"));
        assert_eq!(choose(None, &["a", "b"]), None);
        assert_eq!(choose(Some("c"), &["a"]), None);
        assert_eq!(choose(None, &[]), None);
    }
}
