//! `/v1/hooks`: what a tenant takes from senders of webhooks. The tenant's own routes name a hook plainly; a sender, who has no
//! token, posts to `/v1/hooks/TENANT.HOOK` and proves itself by its signature.

pub(crate) mod config;
pub(crate) mod pointer;
mod receive;
pub(crate) mod text;
mod work;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::{Caller, scope};
use super::error::{Problem, Result};
use super::extract::{Json, Path, Query, raw};
use super::keyed::{Answer, Failed, Keyed, Work};
use super::page::{self, Asked, Page};
use super::time::Time;
use super::{Api, body};
use crate::store::{Tx, hook};

pub use receive::{__path_deliver, MAX_ARRIVING, deliver};

const LONGEST_NAME: usize = 64;
const MAX_CONFIG_BYTES: usize = 16 << 10;
const MAX_HOOKS: i64 = 100;

#[derive(Serialize, ToSchema)]
pub struct Hook {
    name: String,
    /// Where the sender posts to.
    path: String,
    /// As it was put.
    #[schema(value_type = config::Written)]
    config: Box<RawValue>,
    created_at: Time,
    updated_at: Time,
}

#[derive(Serialize, ToSchema)]
pub struct Delivery {
    /// Null: there was none where the hook looks for it.
    delivery_id: Option<String>,
    outcome: String,
    run_id: Option<Uuid>,
    reason: Option<String>,
    tries: i32,
    last_at: Time,
}

/// Lists the hooks by name.
#[utoipa::path(
    get, path = "/hooks", operation_id = "list_hooks", tag = "hooks",
    params(Asked), responses((status = 200, body = Page<Hook>)), security(("bearer" = ["read"]))
)]
pub async fn list(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Query(asked): Query<Asked>,
) -> Result<Json<Page<Hook>>> {
    let limit = page::limit(asked.limit, &api.config.api)?;
    let after = page::name_place(asked.after.as_deref())?;
    let rows = hook::list(&api.store, &caller.tenant, after.as_deref(), page::rows(limit)).await?;
    Ok(Json(Page::of(rows, limit, |row| page::name_cursor(&row.hook), |row| view(&caller.tenant, row))?))
}

/// Shows a hook.
#[utoipa::path(
    get, path = "/hooks/{name}", operation_id = "show_hook", tag = "hooks",
    responses((status = 200, body = Hook)), security(("bearer" = ["read"]))
)]
pub async fn show(State(api): State<Api>, caller: Caller<scope::Read>, Path(name): Path<String>) -> Result<Json<Hook>> {
    let row = find(&api, &caller.tenant, &name).await?;
    Ok(Json(view(&caller.tenant, row)?))
}

/// Shows what became of the last deliveries of a hook, newest first.
#[utoipa::path(
    get, path = "/hooks/{name}/deliveries", operation_id = "list_deliveries", tag = "hooks",
    responses((status = 200, body = Page<Delivery>)), security(("bearer" = ["read"]))
)]
pub async fn deliveries(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(name): Path<String>,
) -> Result<Json<Page<Delivery>>> {
    let row = find(&api, &caller.tenant, &name).await?;
    let rows = hook::list_deliveries(&api.store, &caller.tenant, &row.hook).await?;
    let view = |row: hook::Delivery| Delivery {
        delivery_id: Some(row.delivery_id).filter(|id| !id.is_empty()),
        outcome: row.outcome,
        run_id: row.run_id,
        reason: row.reason,
        tries: row.tries,
        last_at: row.last_at.into(),
    };
    Ok(Json(Page { items: rows.into_iter().map(view).collect(), after: None }))
}

/// Puts a hook.
#[utoipa::path(
    put, path = "/hooks/{name}", operation_id = "put_hook", tag = "hooks",
    request_body = config::Written,
    responses(
        (status = 201, body = Hook),
        (status = 200, body = Hook, description = "It replaces the one that was there."),
        (status = 429)
    ),
    security(("bearer" = ["deploy"]))
)]
pub async fn put(State(api): State<Api>, Path(name): Path<String>, request: Keyed<scope::Deploy>) -> Result<Response> {
    let prepared = async {
        if !is_name(&name) {
            let rule = format!("hook name: must be 1 to {LONGEST_NAME} characters of A-Z a-z 0-9 _ -");
            return Err(Problem::validation(rule));
        }
        let config = request.parse::<config::Written>(&api)?.check()?;
        let text = String::from_utf8_lossy(request.bytes()?).into_owned();
        if text.len() > MAX_CONFIG_BYTES {
            return Err(Problem::too_large(MAX_CONFIG_BYTES));
        }
        Ok(Put { tenant: request.caller.tenant.clone(), name, secrets: config.secrets, text })
    };
    request.carry_out(&api, prepared).await
}

/// Stores a hook that was checked.
struct Put {
    tenant: String,
    name: String,
    secrets: Vec<String>,
    text: String,
}

impl Work for Put {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        let missing = hook::missing_secrets(&mut *tx, &self.tenant, &self.secrets).await?;
        if let Some(name) = missing.first() {
            let words = format!("verify.secret: there is no secret `{name}`: put it with `deedbox secret set {name}`");
            return Err(Problem::validation(words).into());
        }
        let put = hook::put(tx, &self.tenant, &self.name, &self.secrets, &self.text, MAX_HOOKS).await?;
        let Some(put) = put else {
            return Err(Problem::rate_limited(format!("there are {MAX_HOOKS} hooks, which is the limit")).into());
        };
        let row = hook::Hook {
            hook: self.name.clone(),
            config: self.text.clone(),
            created_at: put.created_at,
            updated_at: put.updated_at,
        };
        let status = if put.fresh { StatusCode::CREATED } else { StatusCode::OK };
        Ok(Answer::json(status, &view(&self.tenant, row)?)?)
    }
}

/// Deletes a hook and what is noted of its deliveries.
#[utoipa::path(
    delete, path = "/hooks/{name}", operation_id = "delete_hook", tag = "hooks",
    responses((status = 204)), security(("bearer" = ["deploy"]))
)]
pub async fn delete(
    State(api): State<Api>,
    Path(name): Path<String>,
    request: Keyed<scope::Deploy, body::Nothing>,
) -> Result<Response> {
    let prepared = async {
        match is_name(&name) {
            true => Ok(Delete { tenant: request.caller.tenant.clone(), name }),
            false => Err(unknown()),
        }
    };
    request.carry_out(&api, prepared).await
}

/// Takes a hook away, with what is noted of its deliveries.
struct Delete {
    tenant: String,
    name: String,
}

impl Work for Delete {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match hook::delete(tx, &self.tenant, &self.name).await? {
            true => Ok(Answer::nothing()),
            false => Err(unknown().into()),
        }
    }

    fn is_single(&self) -> bool {
        true
    }
}

async fn find(api: &Api, tenant: &str, name: &str) -> Result<hook::Hook> {
    if !is_name(name) {
        return Err(unknown());
    }
    hook::find(&api.store, tenant, name).await?.ok_or_else(unknown)
}

fn view(tenant: &str, row: hook::Hook) -> Result<Hook> {
    Ok(Hook {
        path: format!("/v1/hooks/{tenant}.{}", row.hook),
        name: row.hook,
        config: raw(row.config)?,
        created_at: row.created_at.into(),
        updated_at: row.updated_at.into(),
    })
}

/// A hook's name has no dot: the first one in a full name ends the tenant's.
fn is_name(name: &str) -> bool {
    let known = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(known)
}

fn unknown() -> Problem {
    Problem::not_found("hook")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_named_as_the_schema_names_them() {
        for good in ["a", "Stripe_live-2", "-", &"x".repeat(64)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "a.b", "a b", "a/b", "ä", "a\n", "a~", &"x".repeat(65)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
