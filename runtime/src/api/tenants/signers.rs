//! `/v1/tenants/{tenant}/signers`: the public keys whose signatures of modules count for a tenant. Administrators keep them: whoever
//! holds a token that deploys must not be able to add a key and sign with it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{known, unknown};
use crate::api::actor::Actor;
use crate::api::auth::{Caller, scope};
use crate::api::error::{Problem, Result};
use crate::api::extract::{Json, Path, Query};
use crate::api::keyed::{Answer, Failed, Keyed, Work};
use crate::api::page::{self, Asked, Page};
use crate::api::time::Time;
use crate::api::{Api, body, name};
use crate::signature::PublicKey;
use crate::store::signature::{Added, MOST_SIGNERS, NewSigner};
use crate::store::{self, Tx};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutSigner)]
pub struct Put {
    /// An Ed25519 public key: PEM, or its 32 bytes as hexadecimal digits or in base64.
    public_key: String,
}

#[derive(Serialize, ToSchema)]
pub struct Signer {
    signer: String,
    /// 32 bytes, as hexadecimal digits.
    public_key: String,
    created_at: Time,
    added_by: Actor,
}

/// Adds a key. A name keeps its key: to change it, add another and delete this one.
#[utoipa::path(
    put, path = "/tenants/{tenant}/signers/{signer}", operation_id = "put_signer", tag = "tenants",
    request_body = Put,
    responses(
        (status = 201, body = Signer),
        (status = 200, body = Signer, description = "The same key was there already."),
        (status = 429)
    ),
    security(("bearer" = ["admin"]))
)]
pub async fn put(
    State(api): State<Api>,
    Path((tenant, signer)): Path<(String, String)>,
    request: Keyed<scope::Admin>,
) -> Result<Response> {
    let prepared = async {
        known(&tenant)?;
        name::check("signer name", &signer)?;
        let body: Put = request.parse(&api)?;
        let key = PublicKey::parse(&body.public_key);
        let PublicKey(public_key) = key.map_err(|why| Problem::validation(format!("public_key: {why}")))?;
        let (by_token, by_label) = (request.caller.token_id, request.caller.label.clone());
        Ok(Adding { tenant, new: NewSigner { signer, public_key, by_token, by_label } })
    };
    request.carry_out(&api, prepared).await
}

/// Adds a key that was read.
struct Adding {
    tenant: String,
    new: NewSigner,
}

impl Work for Adding {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        let added = match store::signature::add_signer(tx, &self.tenant, &self.new).await {
            Err(error) if error.violates("signers_tenant") => return Err(unknown().into()),
            added => added?,
        };
        match added {
            Added::Fresh(row) => {
                tracing::info!(tenant.id = self.tenant, signer = row.signer, token.id = %row.by_token, "a signer was added");
                Ok(Answer::json(StatusCode::CREATED, &view(row))?)
            }
            Added::Known(row) => Ok(Answer::json(StatusCode::OK, &view(row))?),
            Added::NameTaken => {
                let words = "another key has this name: choose another, or delete that one first";
                Err(Problem::conflict(words).into())
            }
            Added::KeyTaken(signer) => {
                Err(Problem::conflict(format!("public_key: it is there already, as `{signer}`")).into())
            }
            Added::Full => {
                let words = format!("there are {MOST_SIGNERS} signers, which is the limit: delete one first");
                Err(Problem::rate_limited(words).into())
            }
        }
    }
}

/// Lists the signers of a tenant by name.
#[utoipa::path(
    get, path = "/tenants/{tenant}/signers", operation_id = "list_signers", tag = "tenants",
    params(Asked), responses((status = 200, body = Page<Signer>)), security(("bearer" = ["admin"]))
)]
pub async fn list(
    State(api): State<Api>,
    _: Caller<scope::Admin>,
    Path(tenant): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Json<Page<Signer>>> {
    known(&tenant)?;
    let limit = page::limit(asked.limit, &api.config.api)?;
    let after = page::name_place(asked.after.as_deref())?;
    let rows = store::signature::list_signers(&api.store, &tenant, after.as_deref(), page::rows(limit)).await?;
    if rows.is_empty() && !store::tenant::exists(&api.store, &tenant).await? {
        return Err(unknown());
    }
    Ok(Json(Page::of(rows, limit, |row| page::name_cursor(&row.signer), |row| Ok(view(row)))?))
}

/// Deletes a key. What is signed with it alone is not deployed any more where a signature is needed; versions that are there go on.
#[utoipa::path(
    delete, path = "/tenants/{tenant}/signers/{signer}", operation_id = "delete_signer", tag = "tenants",
    responses((status = 204)), security(("bearer" = ["admin"]))
)]
pub async fn delete(
    State(api): State<Api>,
    Path((tenant, signer)): Path<(String, String)>,
    request: Keyed<scope::Admin, body::Nothing>,
) -> Result<Response> {
    let prepared = async {
        known(&tenant)?;
        name::check("signer name", &signer).map_err(|_| no_signer())?;
        Ok(Deleting { tenant, signer })
    };
    request.carry_out(&api, prepared).await
}

/// Takes a key away.
struct Deleting {
    tenant: String,
    signer: String,
}

impl Work for Deleting {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match store::signature::remove_signer(tx, &self.tenant, &self.signer).await? {
            true => {
                tracing::info!(tenant.id = self.tenant, signer = self.signer, "a signer was deleted");
                Ok(Answer::nothing())
            }
            false => Err(no_signer().into()),
        }
    }

    fn is_single(&self) -> bool {
        true
    }
}

fn view(row: store::signature::Signer) -> Signer {
    Signer {
        signer: row.signer,
        public_key: name::hex(&row.public_key),
        created_at: row.created_at.into(),
        added_by: Actor::token(row.by_token, row.by_label),
    }
}

fn no_signer() -> Problem {
    Problem::not_found("signer")
}
