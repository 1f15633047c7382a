//! `/v1/secrets`: credentials for providers. They can be put, named and deleted, never read.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::auth::{Caller, scope};
use super::error::{Problem, Result};
use super::extract::{Json, Path, Query};
use super::keyed::{Answer, Failed, Keyed, Work};
use super::page::{self, Asked, Page};
use super::time::Time;
use super::{Api, body, name};
use crate::store::secret::Sealed;
use crate::store::{self, Tx};

const LONGEST_VALUE: usize = 8192;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutSecret)]
pub struct Put {
    #[schema(value_type = String)]
    value: Zeroizing<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Secret)]
pub struct Name {
    name: String,
    updated_at: Time,
}

/// Puts a secret. Its value is never shown again.
#[utoipa::path(
    put, path = "/secrets/{name}", operation_id = "put_secret", tag = "secrets",
    request_body = Put, responses((status = 204)), security(("bearer" = ["deploy"]))
)]
pub async fn put(State(api): State<Api>, Path(name): Path<String>, request: Keyed<scope::Deploy>) -> Result<Response> {
    let prepared = async {
        name::check("secret name", &name)?;
        let value = request.parse::<Put>(&api)?.value;
        check_value(&value)?;
        let tenant = request.caller.tenant.clone();
        let sealed = api.gateway.vault().sealed(&tenant, &name, &value).await?;
        Ok(Stored { sealed, tenant, name })
    };
    request.carry_out(&api, prepared).await
}

/// Stores a sealed value.
struct Stored {
    tenant: String,
    name: String,
    sealed: Sealed,
}

impl Work for Stored {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        store::secret::put(tx, &self.tenant, &self.name, &self.sealed).await?;
        Ok(Answer::nothing())
    }

    fn is_single(&self) -> bool {
        true
    }
}

/// Lists the names of the secrets.
#[utoipa::path(
    get, path = "/secrets", operation_id = "list_secrets", tag = "secrets",
    params(Asked), responses((status = 200, body = Page<Name>)), security(("bearer" = ["read"]))
)]
pub async fn list(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Query(asked): Query<Asked>,
) -> Result<Json<Page<Name>>> {
    let limit = page::limit(asked.limit, &api.config.api)?;
    let after = page::name_place(asked.after.as_deref())?;
    let rows = store::secret::list(&api.store, &caller.tenant, after.as_deref(), page::rows(limit)).await?;
    let view = |row: store::secret::Name| Ok(Name { name: row.name, updated_at: row.updated_at.into() });
    Ok(Json(Page::of(rows, limit, |row| page::name_cursor(&row.name), view)?))
}

/// Deletes a secret.
#[utoipa::path(
    delete, path = "/secrets/{name}", operation_id = "delete_secret", tag = "secrets",
    responses((status = 204)), security(("bearer" = ["deploy"]))
)]
pub async fn delete(
    State(api): State<Api>,
    Path(name): Path<String>,
    request: Keyed<scope::Deploy, body::Nothing>,
) -> Result<Response> {
    let prepared = async {
        name::check("secret name", &name).map_err(|_| unknown())?;
        Ok(Deleted { tenant: request.caller.tenant.clone(), name })
    };
    request.carry_out(&api, prepared).await
}

struct Deleted {
    tenant: String,
    name: String,
}

impl Work for Deleted {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match store::secret::delete(tx, &self.tenant, &self.name).await? {
            true => Ok(Answer::nothing()),
            false => Err(unknown().into()),
        }
    }

    fn is_single(&self) -> bool {
        true
    }
}

fn unknown() -> Problem {
    Problem::not_found("secret")
}

/// A value goes into a header: nothing may be in it that no header may have.
fn check_value(value: &str) -> Result<()> {
    if (1..=LONGEST_VALUE).contains(&value.len()) && value.bytes().all(|c| (b' '..=b'~').contains(&c)) {
        return Ok(());
    }
    Err(Problem::validation(format!("value: must be 1 to {LONGEST_VALUE} visible ASCII characters or spaces")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_fits_into_a_header() {
        assert!(check_value("sk_test_ ~!").is_ok() && check_value(&"x".repeat(8192)).is_ok());
        for wrong in ["", "a\nb", "a\0", "ä", "\u{7f}", &"x".repeat(8193)] {
            assert!(check_value(wrong).is_err(), "{wrong}");
        }
    }
}
