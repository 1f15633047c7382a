//! Files as effects: what a guest may write where, and how a write is pinned. Each tenant writes below a directory of
//! its own inside the one that the operator has granted; no path of a guest may name, or lead to, anything else.

mod grants;
pub(crate) mod path;
mod write;

use std::sync::Arc;

use bytes::Bytes;

pub use grants::{GrantError, Grants};
pub use write::Write;

use self::path::FilePath;
use super::attempt::Attempt;
use super::pace::Meter;
use super::plan::{Effect, Means};
use super::request::{self, Error, Identity, Refusal, Response};
use crate::effect::OnUnknown;

/// The provider's name in the identity of a write.
const PROVIDER: &str = "files";

/// Changes when a write is carried out in another way.
const VERSION: &str = "1";

impl Attempt {
    /// Writes one file whole, or answers from the ledger. What it starts goes on when the caller is dropped.
    pub async fn write_file(self: &Arc<Self>, path: &str, bytes: Bytes, identity: Identity) -> Result<Response, Error> {
        request::check_identity(&identity)?;
        let path = FilePath::parse(path).map_err(Refusal::InvalidRequest)?;
        let root = self.granted(&path)?;
        self.gateway.grants.check_size(bytes.len()).map_err(Refusal::InvalidRequest)?;
        let _place = self.take_place()?;
        let effect = Effect {
            identity,
            issued_key: None,
            provider: PROVIDER.to_owned(),
            meter: Meter::local(PROVIDER),
            account: String::new(),
            profile_version: VERSION.to_owned(),
            method: "WRITE".to_owned(),
            url: path.url(),
            digest: digest(&path, &bytes),
            streamed: false,
            // A write is safe to make again: nobody is ever asked.
            on_unknown: OnUnknown::Ask,
            means: Means::Write(Box::new(Write { root, tenant: self.tenant().to_owned(), path, bytes })),
        };
        self.make(effect, None).await
    }

    /// The directory behind a path's first segment, where the deployment and the operator both allow it.
    fn granted(&self, path: &FilePath) -> Result<Arc<cap_std::fs::Dir>, Refusal> {
        let name = path.grant.as_str();
        if !self.policy.files.allow.iter().any(|allowed| allowed == name) {
            return Err(Refusal::Denied(format!(
                "no rule of policy.files.allow names `{name}`; add \"{name}\" to allow it"
            )));
        }
        self.gateway.grants.open(name, self.tenant()).map_err(Refusal::Denied)
    }
}

/// BLAKE3 over the path and the bytes, each length-prefixed.
fn digest(path: &FilePath, bytes: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("deedbox 2026 file digest");
    for field in [path.to_string().as_bytes(), bytes] {
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(field);
    }
    *hasher.finalize().as_bytes()
}
