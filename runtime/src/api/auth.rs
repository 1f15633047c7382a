//! Who is calling: bearer tokens and their scopes. A tenant's token opens the tenant's routes, an administrator's token opens
//! those that manage tenants; neither opens the other's.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use uuid::Uuid;

use self::scope::Scope;
use super::Api;
use super::error::{Problem, Result};
use crate::store::provenance::By;
use crate::store::token::Grant;
use crate::store::{self, tenant};
use crate::token;

const REFUSED: &str = "the bearer token is not valid: it is malformed, unknown, revoked or expired";

/// What a token may do. None of them contains another.
pub mod scope {
    use crate::token;

    pub trait Scope: Send + Sync + 'static {
        const NAME: &'static str;
    }

    /// Looking at everything of the tenant.
    #[derive(Debug)]
    pub struct Read;
    /// Starting runs, signalling and controlling them, resolving effects.
    #[derive(Debug)]
    pub struct Run;
    /// Modules, activities, secrets, providers, hooks.
    #[derive(Debug)]
    pub struct Deploy;
    /// Tenants, their limits and their tokens. Only administrators' tokens have it, and they have nothing else.
    #[derive(Debug)]
    pub struct Admin;

    impl Scope for Read {
        const NAME: &'static str = token::Scope::Read.name();
    }
    impl Scope for Run {
        const NAME: &'static str = token::Scope::Run.name();
    }
    impl Scope for Deploy {
        const NAME: &'static str = token::Scope::Deploy.name();
    }
    impl Scope for Admin {
        const NAME: &'static str = token::Scope::Admin.name();
    }
}

/// The owner of a token that has the scope `S`.
#[derive(Debug)]
pub struct Caller<S> {
    /// For an administrator, [`tenant::ADMIN`].
    pub tenant: String,
    /// Names the token, never its secret.
    pub token_id: Uuid,
    /// What its minter called the token.
    pub label: String,
    scope: PhantomData<fn() -> S>,
}

impl<S> Caller<S> {
    /// As it is recorded.
    pub fn by(&self) -> By {
        By::Token { token_id: self.token_id, label: self.label.clone() }
    }
}

/// The token of a request, and what it may do.
struct Owner {
    tenant: String,
    token_id: Uuid,
    label: String,
    scopes: Vec<String>,
}

impl<S: Scope> FromRequestParts<Api> for Caller<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let Owner { tenant, token_id, label, scopes } = owner(&parts.headers, api).await?;
        if !scopes.iter().any(|scope| scope == S::NAME) {
            return Err(Problem::forbidden(lacking(&tenant, S::NAME)));
        }
        if tenant != tenant::ADMIN {
            tracing::Span::current().record("tenant.id", tenant.as_str());
        }
        Ok(Self { tenant, token_id, label, scope: PhantomData })
    }
}

fn lacking(tenant: &str, scope: &str) -> String {
    if tenant == tenant::ADMIN {
        return "this route needs a tenant's token; this one only manages tenants".to_owned();
    }
    match scope {
        "admin" => "this route needs an administrator's token".to_owned(),
        scope => format!("this route needs a token with the scope `{scope}`"),
    }
}

async fn owner(headers: &HeaderMap, api: &Api) -> Result<Owner> {
    let text = bearer(headers)
        .ok_or_else(|| Problem::unauthenticated("one `Authorization: Bearer TOKEN` header is needed"))?;
    let token =
        token::parse(text).filter(|token| token.tenant == tenant::ADMIN || super::name::is_tenant(token.tenant));
    let token = token.ok_or_else(|| Problem::unauthenticated(REFUSED))?;
    let grant = store::token::find(&api.store, token.tenant, token.token_id).await?;
    // Compared in any case, so that an unknown token takes as long as a wrong one.
    let stored = grant.as_ref().and_then(|grant| blake3::Hash::from_slice(&grant.secret_hash).ok());
    let given = blake3::Hash::from_bytes(token::hash(token.secret));
    let equal = stored.unwrap_or_else(|| blake3::Hash::from_bytes([0; 32])) == given;
    match grant {
        Some(Grant { label, scopes, expired: false, .. }) if equal => {
            Ok(Owner { tenant: token.tenant.to_owned(), token_id: token.token_id, label, scopes })
        }
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
