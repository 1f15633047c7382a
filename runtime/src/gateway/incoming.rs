//! Deliveries of senders: whether they are signed with a secret of the tenant. The secrets are opened for that and for nothing
//! else; none may leave this file.

use zeroize::Zeroizing;

use super::Gateway;
use crate::store::secret::Sealed;
use crate::webhook::scheme::{self, Scheme, Signed};

/// How a hook checks what it is sent.
#[derive(Clone)]
pub struct Check {
    pub tenant: String,
    pub scheme: Scheme,
    /// Names and values; those that are not there are left out.
    pub secrets: Vec<(String, Sealed)>,
}

impl Gateway {
    /// Whether the delivery is signed with one of the hook's secrets. Without a hook it is not, and to say so takes as long. A
    /// secret that cannot be opened has signed nothing; the log says which.
    pub async fn is_signed(&self, check: Option<&Check>, signed: &Signed<'_>) -> bool {
        let secrets = match check {
            Some(check) => self.secrets(check).await,
            None => Vec::new(),
        };
        let secrets: Vec<&str> = secrets.iter().map(|secret| secret.as_str()).collect();
        scheme::is_signed(check.map(|check| &check.scheme), &secrets, signed)
    }

    async fn secrets(&self, check: &Check) -> Vec<Zeroizing<String>> {
        // Told only to those who look closely: anyone who knows a hook's name could write these lines.
        let mut opened = Vec::new();
        for (name, sealed) in &check.secrets {
            match self.vault.open_sealed(&check.tenant, name, sealed).await {
                Ok(secret) => {
                    if check.scheme.key(&secret).is_none() {
                        tracing::debug!(tenant.id = check.tenant, "a hook's secret must be `whsec_` and Base64");
                    }
                    opened.push(secret);
                }
                Err(error) => tracing::debug!(tenant.id = check.tenant, %error, "a hook cannot use its secret"),
            }
        }
        if check.secrets.is_empty() {
            tracing::debug!(tenant.id = check.tenant, "a hook's secret is not there: put it with `deedbox secret set`");
        }
        opened
    }
}
