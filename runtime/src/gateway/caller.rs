//! Whoever sends for a tenant: puts the tenant's credential into a request, and masks it in the answer.

use std::sync::Arc;

use http::{HeaderValue, header};

use super::egress::Target;
use super::provider::{Profile, Signing, UNLISTED};
use super::request::{Error, Refusal};
use super::transport::{Body, Outgoing, Sent};
use super::{Gateway, vault};
use crate::policy::{Origin, Policy};

#[derive(Clone, Copy)]
pub struct Caller<'a> {
    pub gateway: &'a Gateway,
    pub tenant: &'a str,
    pub policy: &'a Policy,
}

impl Caller<'_> {
    /// The profile that speaks for an origin: the one that the deployment names, else the tenant's or the host's own that
    /// names the host.
    pub async fn profile_at(&self, origin: &Origin) -> Result<Arc<Profile>, Error> {
        let own = self.gateway.profiles_of(self.tenant).await?;
        let shipped = &self.gateway.profiles;
        let by_name = |name: &str| own.get(name).or_else(|| shipped.get(name)).cloned();
        let unknown =
            |name: &str| Refusal::Denied(format!("policy.providers names the profile `{name}`, which is not there"));
        let found = match self.policy.provider_at(origin) {
            Some(name) => by_name(name).ok_or_else(|| unknown(name))?,
            None => {
                let at = own.at(origin).or_else(|| shipped.at(origin)).cloned();
                at.or_else(|| by_name(UNLISTED)).ok_or_else(|| unknown(UNLISTED))?
            }
        };
        Ok(found)
    }

    /// The account that the deployment names for a profile. It is part of an effect's identity.
    pub fn account_at(&self, profile: &Profile) -> String {
        self.policy.credentials.get(&profile.name.0).map_or(String::new(), |credential| credential.account.clone())
    }

    /// The request with the credential that the deployment names, and the credential, for [`masked`].
    pub async fn credentialed(
        &self,
        profile: &Profile,
        target: &Target,
        mut outgoing: Outgoing,
    ) -> Result<(Outgoing, Option<vault::Secret>), Error> {
        // An encoded answer could carry the credential unseen, and could not be read when it is replayed.
        outgoing.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let (Some(credential), Some(placement)) = (self.policy.credentials.get(&profile.name.0), &profile.credential)
        else {
            return Ok((outgoing, None));
        };
        let opened = self.gateway.vault.open(self.tenant, &credential.secret).await;
        let secret = opened.map_err(|e| match e {
            vault::Error::Store(e) => Error::from(e),
            other => Refusal::Denied(other.to_string()).into(),
        })?;
        let signing = Signing {
            method: &outgoing.method,
            region: profile.region_of(&target.origin.host.to_string()),
            url: &mut outgoing.url,
            headers: &mut outgoing.headers,
            body: &outgoing.body,
            now: self.gateway.clock.now(),
        };
        placement.inject(signing, &secret).map_err(Refusal::Denied)?;
        Ok((outgoing, Some(secret)))
    }
}

/// An answer in which every trace of the credential is masked.
pub fn masked(sent: Sent, secret: Option<&vault::Secret>) -> Sent {
    match (sent, secret) {
        (Sent::Answer { status, mut headers, body }, Some(secret)) => {
            secret.mask().headers(&mut headers);
            let body = match body {
                Body::Whole(bytes) => Body::Whole(secret.mask().body(bytes)),
                other => other,
            };
            Sent::Answer { status, headers, body }
        }
        (sent, _) => sent,
    }
}
