//! Whoever sends for a tenant: puts the tenant's credential into a request, and masks it in the answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, header};

use super::provider::{Placement, Profile, Signing, UNLISTED};
use super::request::{Error, Refusal};
use super::resolver::Target;
use super::transport::{Body, Outgoing, Payload, Sent};
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
    /// names the host. At an origin that only a wildcard allows, the one that the deployment names, else none in particular.
    pub async fn profile_at(&self, origin: &Origin) -> Result<Arc<Profile>, Error> {
        let own = self.gateway.profiles_of(self.tenant).await?;
        let shipped = &self.gateway.profiles;
        let by_name = |name: &str| own.get(name).or_else(|| shipped.get(name)).cloned();
        let unknown =
            |name: &str| Refusal::Denied(format!("policy.providers names the profile `{name}`, which is not there"));
        let found = match self.policy.provider_at(origin) {
            Some(name) => by_name(name).ok_or_else(|| unknown(name))?,
            // Of a wildcard's hosts nobody has said at the deployment who speaks for them, and a profile that came later would
            // give their effects another identity.
            None if !self.policy.egress.origins().any(|named| named == *origin) => {
                by_name(UNLISTED).ok_or_else(|| unknown(UNLISTED))?
            }
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
        let body = match &outgoing.body {
            Payload::Buffered(bytes) => bytes.clone(),
            Payload::Streamed(_) if matches!(placement, Placement::AwsSigv4(_)) => {
                return Err(too_large_to("the provider's signature covers the body").into());
            }
            Payload::Streamed(_) => Bytes::new(),
        };
        let opened = self.gateway.vault.open_named(self.tenant, &credential.secret).await;
        let secret = opened.map_err(|e| match e {
            vault::Error::Store(e) => Error::from(e),
            other => Refusal::Denied(other.for_tenant()).into(),
        })?;
        let signing = Signing {
            method: &outgoing.method,
            region: profile.region_of(&target.origin.host.to_string()),
            url: &mut outgoing.url,
            headers: &mut outgoing.headers,
            body: &body,
            now: self.gateway.clock.now(),
        };
        placement.inject(signing, &secret).map_err(Refusal::Denied)?;
        Ok((outgoing, Some(secret)))
    }
}

/// The refusal of a streamed body where the body itself is needed.
pub fn too_large_to(why: &str) -> Refusal {
    Refusal::InvalidRequest(format!(
        "{why}, and this body is larger than gateway.max_buffered_request_bytes: send a smaller one, or raise the setting"
    ))
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
