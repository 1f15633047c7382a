//! `/v1/modules`: uploaded components, by the digest of their bytes.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::actor::Actor;
use super::auth::{Caller, scope};
use super::error::{Problem, Result};
use super::extract::{Json, Path, Query, raw, stored};
use super::keyed::{Answer, Failed, Keyed, Work};
use super::page::{self, Asked, Page};
use super::signatures::{self, ModuleSignature};
use super::time::Time;
use super::{Api, body, name};
use crate::registry::Prepared;
use crate::store::provenance::By;
use crate::store::signature::{NewSignature, Signature, of_modules};
use crate::store::{Db, Tx};
use crate::{host, store};

#[derive(Serialize, ToSchema)]
pub struct Module {
    digest: String,
    size_bytes: i32,
    #[schema(value_type = Vec<String>)]
    imports: Box<RawValue>,
    activities: Vec<Activity>,
    /// What will not work, in words.
    warnings: Vec<&'static str>,
    created_at: Time,
    /// Who brought these bytes first.
    uploaded_by: Actor,
    signatures: Vec<ModuleSignature>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Uploading {
    /// A signature of the module: 64 bytes, as hexadecimal digits or in base64 (its `+`, `/` and `=` percent-encoded).
    signature: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ModuleActivity)]
struct Activity {
    name: String,
    summary: String,
    #[schema(value_type = Option<Value>)]
    input_schema: Option<Box<RawValue>>,
    #[schema(value_type = Option<Value>)]
    output_schema: Option<Box<RawValue>>,
}

/// An activity as it is stored. The schemas are JSON texts.
#[derive(Deserialize)]
struct Described {
    name: String,
    summary: String,
    input_schema: Option<String>,
    output_schema: Option<String>,
}

/// Uploads a component. What is the same is there once. With a signature that is not good nothing is kept.
#[utoipa::path(
    post, path = "/modules", operation_id = "upload_module", tag = "modules", params(Uploading),
    request_body(content = Vec<u8>, content_type = "application/wasm"),
    responses(
        (status = 201, body = Module),
        (status = 200, body = Module, description = "It was there already.")
    ),
    security(("bearer" = ["deploy"]))
)]
pub async fn upload(
    State(api): State<Api>,
    Query(asked): Query<Uploading>,
    request: Keyed<scope::Deploy, body::Component>,
) -> Result<Response> {
    let prepared = async {
        let (caller, bytes) = (&request.caller, request.bytes()?.clone());
        let signature = match asked.signature.as_deref().map(signatures::parse).transpose()? {
            Some(signature) => {
                let digest = *blake3::hash(&bytes).as_bytes();
                Some(signatures::verified(&api, caller, &digest, &signature).await?)
            }
            None => None,
        };
        let uploaded = api.registry.prepare(&caller.tenant, bytes).await?;
        Ok(Upload { tenant: caller.tenant.clone(), uploaded, by: caller.by(), signature })
    };
    request.carry_out(&api, prepared).await
}

/// Stores a component that was found to be good, and its signature.
struct Upload {
    tenant: String,
    uploaded: Prepared,
    by: By,
    signature: Option<NewSignature>,
}

impl Work for Upload {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        let fresh = self.uploaded.store(tx, &self.tenant, &self.by).await?;
        let row = store::module::find(&mut *tx, &self.tenant, &self.uploaded.digest).await?;
        let row =
            row.ok_or_else(|| Problem::not_yet("the module was deleted while it was uploaded: upload it again"))?;
        if let Some(signature) = &self.signature {
            signatures::keep(tx, &self.tenant, &self.uploaded.digest, signature).await?;
        }
        let status = if fresh { StatusCode::CREATED } else { StatusCode::OK };
        Ok(Answer::json(status, &shown(tx, &self.tenant, row).await?)?)
    }
}

/// Lists the modules, oldest first.
#[utoipa::path(
    get, path = "/modules", operation_id = "list_modules", tag = "modules",
    params(Asked), responses((status = 200, body = Page<Module>)), security(("bearer" = ["read"]))
)]
pub async fn list(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Query(asked): Query<Asked>,
) -> Result<Json<Page<Module>>> {
    let limit = page::limit(asked.limit, &api.config.api)?;
    let after = page::place(asked.after.as_deref())?;
    let rows = store::module::list(&api.store, &caller.tenant, after, page::rows(limit)).await?;
    let digests: Vec<_> = rows.iter().map(|row| row.digest.clone()).collect();
    let mut signatures = of_modules(&api.store, &caller.tenant, &digests).await?;
    let view = |row: store::module::Module| {
        let own = signatures.extract_if(.., |signature| signature.digest == row.digest).collect();
        view(row, own)
    };
    Ok(Json(Page::of(rows, limit, |row| page::cursor(row.created_at, &row.digest), view)?))
}

/// Shows a module.
#[utoipa::path(
    get, path = "/modules/{digest}", operation_id = "show_module", tag = "modules",
    responses((status = 200, body = Module)), security(("bearer" = ["read"]))
)]
pub async fn show(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(digest): Path<String>,
) -> Result<Json<Module>> {
    let row = store::module::find(&api.store, &caller.tenant, &known(&digest)?).await?;
    Ok(Json(shown(&api.store, &caller.tenant, row.ok_or_else(unknown)?).await?))
}

/// Deletes a module that no version of an activity uses.
#[utoipa::path(
    delete, path = "/modules/{digest}", operation_id = "delete_module", tag = "modules",
    responses((status = 204)), security(("bearer" = ["deploy"]))
)]
pub async fn delete(
    State(api): State<Api>,
    Path(digest): Path<String>,
    request: Keyed<scope::Deploy, body::Nothing>,
) -> Result<Response> {
    request
        .carry_out(&api, async { Ok(Delete { tenant: request.caller.tenant.clone(), digest: known(&digest)? }) })
        .await
}

struct Delete {
    tenant: String,
    digest: [u8; 32],
}

impl Work for Delete {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match store::module::delete(tx, &self.tenant, &self.digest).await {
            Ok(true) => Ok(Answer::nothing()),
            Ok(false) => Err(unknown().into()),
            Err(error) if error.violates("activity_versions_module") => {
                let words = "a version of an activity uses this module; versions, and what they use, are kept";
                Err(Problem::conflict(words).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn is_single(&self) -> bool {
        true
    }
}

/// The names under which a module exports activities.
pub fn exports(row: &store::module::Module) -> Result<Vec<String>> {
    let described: Vec<Described> = stored(&row.activities)?;
    Ok(described.into_iter().map(|activity| activity.name).collect())
}

pub fn known(digest: &str) -> Result<[u8; 32]> {
    name::hash(digest).ok_or_else(unknown)
}

pub fn unknown() -> Problem {
    Problem::not_found("module")
}

/// A module with its signatures.
pub async fn shown(db: impl Db, tenant: &str, row: store::module::Module) -> Result<Module> {
    let signatures = of_modules(db, tenant, std::slice::from_ref(&row.digest)).await?;
    view(row, signatures)
}

fn view(row: store::module::Module, signatures: Vec<Signature>) -> Result<Module> {
    let described: Vec<Described> = stored(&row.activities)?;
    let imports: Vec<String> = stored(&row.imports)?;
    Ok(Module {
        warnings: host::warnings(imports.iter().map(String::as_str)),
        digest: name::hex(&row.digest),
        size_bytes: row.size_bytes,
        imports: raw(row.imports)?,
        activities: described.into_iter().map(activity).collect::<Result<_>>()?,
        created_at: row.created_at.into(),
        uploaded_by: Actor::recorded(&row.by_kind, row.by_token, row.by_label),
        signatures: signatures.into_iter().map(signatures::view).collect(),
    })
}

fn activity(described: Described) -> Result<Activity> {
    Ok(Activity {
        name: described.name,
        summary: described.summary,
        input_schema: described.input_schema.map(raw).transpose()?,
        output_schema: described.output_schema.map(raw).transpose()?,
    })
}
