//! The callback of a start: who is told when the run has ended. Checked before anything is started; the gateway decides
//! where a tenant may send.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::error::{Problem, Result};
use crate::api::extract::stored;
use crate::api::{Api, name};
use crate::gateway::callback::{DEFAULT_SECRET, Refused};
use crate::policy::Policy;
use crate::store::callback::NewCallback;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StartCallback)]
pub struct Asked {
    /// Absolute, http or https, at an origin that `policy.egress.allow` names.
    pub url: String,
    /// The name of the secret that signs; `webhook` if absent.
    pub secret: Option<String>,
}

/// `policy`: of the version that the run will have, as it is stored.
pub async fn checked(api: &Api, tenant: &str, policy: &str, asked: Option<Asked>) -> Result<Option<NewCallback>> {
    let Some(Asked { url, secret }) = asked else { return Ok(None) };
    let secret = secret.as_deref().unwrap_or(DEFAULT_SECRET);
    name::check("callback.secret", secret)?;
    let policy: Policy = stored(policy)?;
    let checked = api.gateway.check_callback(tenant, &policy.egress, &url, secret).await;
    checked.map(Some).map_err(|refused| match refused {
        Refused::Invalid(message) => Problem::validation(message),
        Refused::Store(error) => error.into(),
    })
}
