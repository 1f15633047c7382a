//! Who is calling: bearer tokens. A tenant's token opens the tenant's routes, an administrator's token opens those that
//! manage tenants; neither opens the other's.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use uuid::Uuid;

use super::Api;
use super::error::{Problem, Result};
use crate::store::{self, tenant};
use crate::token;

const REFUSED: &str = "the bearer token is not valid: it is malformed, unknown or revoked";

/// A tenant, by its token.
pub struct Caller {
    pub tenant: String,
    /// Names the token, never its secret.
    pub token_id: Uuid,
}

/// One who may manage tenants.
pub struct Admin;

impl FromRequestParts<Api> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let (tenant, token_id) = owner(&parts.headers, api).await?;
        if tenant == tenant::ADMIN {
            return Err(Problem::forbidden("this route needs a tenant's token; this one only manages tenants"));
        }
        tracing::Span::current().record("tenant.id", tenant.as_str());
        Ok(Self { tenant, token_id })
    }
}

impl FromRequestParts<Api> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let (tenant, _) = owner(&parts.headers, api).await?;
        if tenant != tenant::ADMIN {
            return Err(Problem::forbidden("this route needs an administrator's token"));
        }
        Ok(Self)
    }
}

/// The owner of the request's token, and the token's id.
async fn owner(headers: &HeaderMap, api: &Api) -> Result<(String, Uuid)> {
    let text = bearer(headers)
        .ok_or_else(|| Problem::unauthenticated("one `Authorization: Bearer TOKEN` header is needed"))?;
    let token =
        token::parse(text).filter(|token| token.tenant == tenant::ADMIN || super::name::is_tenant(token.tenant));
    let token = token.ok_or_else(|| Problem::unauthenticated(REFUSED))?;
    let stored = store::token::find_hash(&api.store, token.tenant, token.token_id).await?;
    let stored = stored.and_then(|hash| blake3::Hash::from_slice(&hash).ok());
    let given = blake3::Hash::from_bytes(token::hash(token.secret));
    match stored {
        Some(stored) if stored == given => Ok((token.tenant.to_owned(), token.token_id)),
        _ => Err(Problem::unauthenticated(REFUSED)),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(one), None) = (all.next(), all.next()) else { return None };
    let (scheme, token) = one.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim_start_matches(' '))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(values: &[&'static str]) -> Option<String> {
        let pair = |value| (header::AUTHORIZATION, HeaderValue::from_static(value));
        bearer(&values.iter().copied().map(pair).collect()).map(str::to_owned)
    }

    #[test]
    fn exactly_one_bearer_header_is_read() {
        assert_eq!(read(&["Bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(read(&["bearer  abc"]).as_deref(), Some("abc"));
        for wrong in [&[][..], &["abc"], &["Basic abc"], &["Bearer a", "Bearer a"], &["Bearerabc"]] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }
}
