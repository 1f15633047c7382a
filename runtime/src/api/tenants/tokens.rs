//! `/v1/tenants/{tenant}/tokens`: the tokens of a tenant, and those of the administrators, whose owner is `_admin`. A token's text is
//! in one answer, the one that mints it, and nowhere else.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::unknown;
use crate::api::auth::{Caller, scope};
use crate::api::error::{Problem, Result};
use crate::api::extract::{Json, Path, Query};
use crate::api::keyed::{Answer, Failed, Keyed, Work};
use crate::api::page::{self, Asked, Page};
use crate::api::time::Time;
use crate::api::{Api, body, name};
use crate::gateway::vault::DataKey;
use crate::policy::Span;
use crate::store::tenant::ADMIN;
use crate::store::token::{Expiry, NewToken};
use crate::store::{self, Tx};
use crate::token::{self, Scope};

/// The shortest and the longest life of a token that expires, in seconds.
const SHORTEST_S: u64 = 1;
const LONGEST_S: u64 = 3660 * 24 * 3600;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MintToken)]
pub struct Mint {
    #[serde(default)]
    label: String,
    /// Absent: all that the owner's tokens may have.
    scopes: Option<Vec<Scope>>,
    /// Counted from now by the database's clock.
    expires_in: Option<Span>,
    expires_at: Option<DateTime<Utc>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = MintedToken)]
pub struct Minted<'a> {
    token_id: String,
    /// In this answer and in no other.
    #[schema(value_type = String)]
    token: &'a str,
    #[schema(value_type = String)]
    label: &'a str,
    #[schema(value_type = Vec<Scope>)]
    scopes: &'a [String],
    created_at: Time,
    expires_at: Option<Time>,
}

#[derive(Serialize, ToSchema)]
pub struct Token {
    token_id: String,
    label: String,
    #[schema(value_type = Vec<Scope>)]
    scopes: Vec<String>,
    created_at: Time,
    expires_at: Option<Time>,
}

/// Makes a token. Its text is in this answer and in no other.
#[utoipa::path(
    post, path = "/tenants/{tenant}/tokens", operation_id = "mint_token", tag = "tenants",
    request_body = Mint, responses((status = 201, body = Minted)), security(("bearer" = ["admin"]))
)]
pub async fn mint(
    State(api): State<Api>,
    Path(tenant): Path<String>,
    request: Keyed<scope::Admin>,
) -> Result<Response> {
    request
        .carry_out(&api, async {
            known(&tenant)?;
            let body: Mint = request.parse(&api)?;
            name::check_label("label", &body.label)?;
            let scopes = checked_scopes(&tenant, body.scopes)?;
            let expiry = checked_expiry(body.expires_in, body.expires_at, Utc::now())?;
            let (token_id, text, secret_hash) = token::mint(&tenant);
            let new = NewToken { token_id, secret_hash, label: body.label, scopes, expiry };
            // The answer is kept with the caller's request key, for the caller.
            let sealer = api.gateway.vault().current(&request.caller.tenant).await?;
            Ok(Minting { tenant, text: Zeroizing::new(text), new, sealer })
        })
        .await
}

/// Lists the tokens of a tenant, oldest first. Those that have expired are in it until they are revoked.
#[utoipa::path(
    get, path = "/tenants/{tenant}/tokens", operation_id = "list_tokens", tag = "tenants",
    params(Asked), responses((status = 200, body = Page<Token>)), security(("bearer" = ["admin"]))
)]
pub async fn list(
    State(api): State<Api>,
    _: Caller<scope::Admin>,
    Path(tenant): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Json<Page<Token>>> {
    known(&tenant)?;
    let limit = page::limit(asked.limit, &api.config.api)?;
    let after = page::place(asked.after.as_deref())?;
    let rows = store::token::list(&api.store, &tenant, after, page::rows(limit)).await?;
    if rows.is_empty() && !store::tenant::exists(&api.store, &tenant).await? {
        return Err(unknown());
    }
    Ok(Json(Page::of(rows, limit, |row| page::cursor(row.created_at, &row.token_id), |row| Ok(view(row)))?))
}

/// Revokes a token. The next request with it is refused, on every node.
#[utoipa::path(
    delete, path = "/tenants/{tenant}/tokens/{token}", operation_id = "revoke_token", tag = "tenants",
    responses((status = 204)), security(("bearer" = ["admin"]))
)]
pub async fn revoke(
    State(api): State<Api>,
    Path((tenant, token)): Path<(String, String)>,
    request: Keyed<scope::Admin, body::Nothing>,
) -> Result<Response> {
    request
        .carry_out(&api, async {
            known(&tenant)?;
            let token_id = Uuid::try_parse(&token).ok().filter(|id| text(*id) == token || id.to_string() == token);
            Ok(Revoke { tenant, token_id: token_id.ok_or_else(no_token)? })
        })
        .await
}

struct Minting {
    tenant: String,
    text: Zeroizing<String>,
    new: NewToken,
    sealer: DataKey,
}

impl Work for Minting {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        let new = &self.new;
        let term = match store::token::create(tx, &self.tenant, new).await {
            Err(error) if error.violates("tokens_tenant") => return Err(unknown().into()),
            term => term?,
        };
        let minted = Minted {
            token_id: text(new.token_id),
            token: &self.text,
            label: &new.label,
            scopes: &new.scopes,
            created_at: term.created_at.into(),
            expires_at: term.expires_at.map(Time::from),
        };
        Ok(Answer::json(StatusCode::CREATED, &minted)?.sealed_with(self.sealer.clone()))
    }
}

struct Revoke {
    tenant: String,
    token_id: Uuid,
}

impl Work for Revoke {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match store::token::delete(tx, &self.tenant, self.token_id).await? {
            true => Ok(Answer::nothing()),
            false => Err(no_token().into()),
        }
    }
}

/// Each scope once, as they are stored.
fn checked_scopes(owner: &str, asked: Option<Vec<Scope>>) -> Result<Vec<String>> {
    let allowed = Scope::of(owner == ADMIN);
    let mut scopes = asked.unwrap_or_else(|| allowed.to_vec());
    if scopes.is_empty() {
        return Err(Problem::validation("scopes: must name at least one; leave it out for all that there are"));
    }
    if !scopes.iter().all(|scope| allowed.contains(scope)) {
        let allowed = Scope::names(allowed).join(", ");
        return Err(Problem::validation(format!("scopes: a token of `{owner}` may have {allowed}")));
    }
    scopes.sort_unstable();
    scopes.dedup();
    Ok(Scope::names(&scopes))
}

fn checked_expiry(span: Option<Span>, at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Result<Expiry> {
    let years = LONGEST_S / (366 * 24 * 3600);
    match (span, at) {
        (None, None) => Ok(Expiry::Never),
        (Some(_), Some(_)) => Err(Problem::validation("expires_in: give either expires_in or expires_at")),
        (Some(Span(span)), None) if (SHORTEST_S..=LONGEST_S).contains(&span.as_secs()) => {
            Ok(Expiry::AfterMs(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
        }
        (Some(_), None) => Err(Problem::validation(format!("expires_in: must be between 1s and {years} years"))),
        (None, Some(at)) => {
            let left = at.signed_duration_since(now).to_std().unwrap_or_default();
            match (SHORTEST_S..=LONGEST_S).contains(&left.as_secs()) {
                true => Ok(Expiry::At(at)),
                false => Err(Problem::validation(format!("expires_at: must be within the next {years} years"))),
            }
        }
    }
}

fn view(row: store::token::Token) -> Token {
    Token {
        token_id: text(row.token_id),
        label: row.label,
        scopes: row.scopes,
        created_at: row.created_at.into(),
        expires_at: row.expires_at.map(Time::from),
    }
}

/// A token's id as the token's text shows it.
fn text(token_id: Uuid) -> String {
    token_id.simple().to_string()
}

/// Who can own tokens: a tenant, or the administrators. A name that nobody can have names nobody.
fn known(owner: &str) -> Result<()> {
    if owner == ADMIN || name::is_tenant(owner) { Ok(()) } else { Err(unknown()) }
}

fn no_token() -> Problem {
    Problem::not_found("token")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_token_has_the_scopes_that_its_owner_may_give() {
        let scopes = |owner: &str, asked: &[Scope]| checked_scopes(owner, Some(asked.to_vec())).ok();
        assert_eq!(scopes("acme", &[Scope::Read, Scope::Run, Scope::Read]), Some(vec!["run".into(), "read".into()]));
        assert_eq!(scopes(ADMIN, &[Scope::Admin]), Some(vec!["admin".into()]));
        assert_eq!(checked_scopes("acme", None).ok().map(|all| all.join(" ")).as_deref(), Some("deploy run read"));
        assert_eq!(checked_scopes(ADMIN, None).ok().map(|all| all.join(" ")).as_deref(), Some("admin"));
        for (owner, wrong) in [("acme", &[][..]), ("acme", &[Scope::Admin, Scope::Read]), (ADMIN, &[Scope::Read])] {
            assert_eq!(scopes(owner, wrong), None, "{owner} {wrong:?}");
        }
    }

    #[test]
    fn a_token_expires_after_a_span_or_at_a_time_or_never() {
        let now = Utc::now();
        let span = |seconds| Some(Span(Duration::from_secs(seconds)));
        let at = |seconds| Some(now + chrono::TimeDelta::seconds(seconds));
        assert_eq!(checked_expiry(None, None, now).ok(), Some(Expiry::Never));
        assert_eq!(checked_expiry(span(90), None, now).ok(), Some(Expiry::AfterMs(90_000)));
        assert_eq!(checked_expiry(None, at(90), now).ok(), at(90).map(Expiry::At));
        for (span, at) in [
            (span(0), None),
            (span(LONGEST_S + 1), None),
            (None, at(0)),
            (None, at(-90)),
            (None, at(i64::try_from(LONGEST_S).unwrap() + 1)),
            (span(90), at(90)),
        ] {
            assert!(checked_expiry(span, at, now).is_err(), "{span:?} {at:?}");
        }
    }
}
