//! `/v1/modules/{digest}/signature`: signatures of modules. One is stored only when it is good under a key of the tenant's
//! signers; it changes nothing about the module, and nobody signs here.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::actor::Actor;
use super::auth::{Caller, scope};
use super::error::{Problem, Result};
use super::extract::Path;
use super::keyed::{Answer, Failed, Keyed, Work};
use super::modules::{self, Module};
use super::time::Time;
use super::{Api, name};
use crate::signature::{PublicKey, Signature};
use crate::store::signature::{NewSignature, SignedBy, Signer};
use crate::store::{self, Tx};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AttachSignature)]
pub struct Attach {
    /// 64 bytes, as hexadecimal digits or in base64.
    signature: String,
}

#[derive(Serialize, ToSchema)]
pub struct ModuleSignature {
    signer: String,
    /// 32 bytes, as hexadecimal digits.
    public_key: String,
    /// The key is one of the tenant's signers: deployments may rest on it.
    counts: bool,
    attached_at: Time,
    attached_by: Actor,
}

/// Whose signature a version was deployed under.
#[derive(Serialize, ToSchema)]
pub struct Signed {
    signer: String,
    public_key: String,
}

/// Attaches a signature to a module. Each key has one; the same again changes nothing.
#[utoipa::path(
    put, path = "/modules/{digest}/signature", operation_id = "attach_signature", tag = "modules",
    request_body = Attach, responses((status = 200, body = Module)), security(("bearer" = ["deploy"]))
)]
pub async fn attach(
    State(api): State<Api>,
    Path(digest): Path<String>,
    request: Keyed<scope::Deploy>,
) -> Result<Response> {
    let prepared = async {
        let digest = modules::known(&digest)?;
        let body: Attach = request.parse(&api)?;
        let signature = parse(&body.signature)?;
        let tenant = request.caller.tenant.clone();
        store::module::find(&api.store, &tenant, &digest).await?.ok_or_else(modules::unknown)?;
        let new = verified(&api, &request.caller, &digest, &signature).await?;
        Ok(Attachment { tenant, digest, new })
    };
    request.carry_out(&api, prepared).await
}

/// Keeps a signature that is good.
struct Attachment {
    tenant: String,
    digest: [u8; 32],
    new: NewSignature,
}

impl Work for Attachment {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        keep(tx, &self.tenant, &self.digest, &self.new).await?;
        let row = store::module::find(&mut *tx, &self.tenant, &self.digest).await?.ok_or_else(modules::unknown)?;
        Ok(Answer::json(StatusCode::OK, &modules::shown(tx, &self.tenant, row).await?)?)
    }
}

pub fn parse(text: &str) -> Result<Signature> {
    Signature::parse(text).map_err(|why| Problem::validation(format!("signature: {why}")))
}

/// The signature, if it is good under a key of the caller's tenant.
pub async fn verified<S>(
    api: &Api,
    caller: &Caller<S>,
    digest: &[u8; 32],
    signature: &Signature,
) -> Result<NewSignature> {
    let signers = store::signature::all_signers(&api.store, &caller.tenant).await?;
    let keys = signers.iter().filter_map(|signer| Some(PublicKey(signer.public_key.as_slice().try_into().ok()?)));
    let mut good = keys.filter(|key| key.signed(digest, signature));
    let key = good.next().ok_or_else(|| none_of(&signers))?;
    Ok(NewSignature {
        public_key: key.0,
        signature: signature.0,
        by_token: caller.token_id,
        by_label: caller.label.clone(),
    })
}

fn none_of(signers: &[Signer]) -> Problem {
    let names: Vec<&str> = signers.iter().map(|signer| signer.signer.as_str()).collect();
    match names.as_slice() {
        [] => Problem::signature_invalid("the tenant has no signers: an administrator adds them"),
        names => Problem::signature_invalid(&format!(
            "it is good under no key of the tenant's signers ({})",
            names.join(", ")
        )),
    }
}

/// Keeps a signature of a module that is there.
pub async fn keep(tx: &mut Tx, tenant: &str, digest: &[u8; 32], new: &NewSignature) -> std::result::Result<(), Failed> {
    match store::signature::attach(tx, tenant, digest, new).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Problem::signature_invalid("its key was deleted meanwhile").into()),
        Err(error) if error.violates("module_signatures_module") => Err(modules::unknown().into()),
        Err(error) => Err(error.into()),
    }
}

/// What a deployment of the module rests on. Fails where the tenant needs a signature and there is none that counts.
pub async fn admitted(tx: &mut Tx, tenant: &str, digest: &[u8]) -> std::result::Result<Option<SignedBy>, Failed> {
    let required = store::signature::is_required(&mut *tx, tenant).await?;
    match store::signature::counted_on(tx, tenant, digest).await? {
        None if required => Err(Problem::signature_required().into()),
        signed => Ok(signed),
    }
}

pub fn view(row: store::signature::Signature) -> ModuleSignature {
    ModuleSignature {
        signer: row.signer,
        public_key: name::hex(&row.public_key),
        counts: row.counts,
        attached_at: row.attached_at.into(),
        attached_by: Actor::token(row.by_token, row.by_label),
    }
}

/// As it was recorded with a version.
pub fn recorded(signer: Option<String>, key: Option<Vec<u8>>) -> Option<Signed> {
    Some(Signed { signer: signer?, public_key: name::hex(&key?) })
}
