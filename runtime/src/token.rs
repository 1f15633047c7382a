//! The text of a bearer token: `ddb.<tenant>.<token id>.<secret>`. It is shown once, when it is minted; what is stored is the
//! hash of its secret part, compared by `blake3::Hash`, whose equality takes the same time for every value.
//!
//! Pure but for the system's random numbers; it must never show or keep a secret.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use rand::TryRng;
use rand::rngs::SysRng;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;
use zeroize::Zeroizing;

const PREFIX: &str = "ddb.";
const SECRET_BYTES: usize = 32;
/// The length of a token id in its simple form.
const ID_CHARS: usize = 32;

/// What a token opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Tenants, their limits and tokens. Only tokens of `_admin` have it, and they have no other.
    Admin,
    /// Modules, activities, secrets, providers.
    Deploy,
    /// Starting runs, and what their owner does to them.
    Run,
    /// Looking at everything of the tenant but the values of its secrets.
    Read,
}

impl Scope {
    pub const OF_ADMINISTRATORS: [Self; 1] = [Self::Admin];
    pub const OF_TENANTS: [Self; 3] = [Self::Deploy, Self::Run, Self::Read];

    /// What the tokens of an owner may have.
    pub const fn of(administrator: bool) -> &'static [Self] {
        if administrator { &Self::OF_ADMINISTRATORS } else { &Self::OF_TENANTS }
    }

    /// The scope as it is stored and written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Deploy => "deploy",
            Self::Run => "run",
            Self::Read => "read",
        }
    }

    /// The names of several, as they are stored.
    pub fn names(scopes: &[Self]) -> Vec<String> {
        scopes.iter().map(|scope| scope.name().to_owned()).collect()
    }
}

/// The parts of a token's text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Parsed<'a> {
    pub tenant: &'a str,
    pub token_id: Uuid,
    /// 43 characters of base64url; give it to `hash`.
    pub secret: &'a str,
}

impl fmt::Debug for Parsed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parsed({}, {})", self.tenant, self.token_id)
    }
}

/// Makes a token for a tenant: its id, its text, and the hash of its secret, which is all that may be stored.
///
/// # Panics
/// When the system has no random numbers: no safe token can be made then.
pub fn mint(tenant: &str) -> (Uuid, String, [u8; 32]) {
    let token_id = Uuid::new_v4();
    let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
    SysRng.try_fill_bytes(&mut bytes[..]).expect("the system must have random numbers");
    let secret = Zeroizing::new(BASE64URL_NOPAD.encode(&bytes[..]));
    let text = format!("{PREFIX}{tenant}.{}.{}", token_id.simple(), secret.as_str());
    (token_id, text, hash(&secret))
}

/// Takes a token's text apart; none when it is no token of ours. Says nothing about whether the token is known.
pub fn parse(text: &str) -> Option<Parsed<'_>> {
    let (rest, secret) = text.strip_prefix(PREFIX)?.rsplit_once('.')?;
    let (tenant, id) = rest.rsplit_once('.')?;
    let lower_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    let simple = id.len() == ID_CHARS && id.bytes().all(lower_hex);
    let whole = BASE64URL_NOPAD.decode(secret.as_bytes()).is_ok_and(|bytes| bytes.len() == SECRET_BYTES);
    if tenant.is_empty() || !simple || !whole {
        return None;
    }
    Some(Parsed { tenant, token_id: Uuid::try_parse(id).ok()?, secret })
}

/// What is stored for a secret.
pub fn hash(secret: &str) -> [u8; 32] {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_token_is_parsed_into_what_it_was_made_of() {
        for tenant in ["default", "_admin", "a.b"] {
            let (token_id, text, stored) = mint(tenant);
            let parsed = parse(&text).unwrap();
            assert_eq!((parsed.tenant, parsed.token_id), (tenant, token_id));
            assert_eq!(parsed.secret.len(), 43);
            assert_eq!(hash(parsed.secret), stored);
        }
    }

    #[test]
    fn a_scope_is_stored_as_it_is_written() {
        for scope in [Scope::Admin, Scope::Deploy, Scope::Run, Scope::Read] {
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.name());
        }
    }

    #[test]
    fn no_two_tokens_are_alike() {
        let (one, other) = (mint("default"), mint("default"));
        assert_ne!(one.0, other.0);
        assert_ne!(one.2, other.2);
    }

    #[test]
    fn what_is_not_exactly_a_token_is_refused() {
        let (_, text, _) = mint("default");
        let parsed = parse(&text).unwrap();
        let (id, secret) = (parsed.token_id, parsed.secret);
        let wrong = [
            String::new(),
            "ddb.".to_owned(),
            text.replacen("ddb.", "DDB.", 1),
            format!("{text}A"),
            text[..text.len() - 1].to_owned(),
            format!(" {text}"),
            format!("ddb..{}.{secret}", id.simple()),
            format!("ddb.default.{}.{secret}", id.hyphenated()),
            format!("ddb.default.{:X}.{secret}", id.simple()),
            format!("ddb.default.{}.{}", id.simple(), secret.replace(|_: char| true, "+")),
            format!("ddb.{}.{secret}", id.simple()),
        ];
        for text in wrong {
            assert_eq!(parse(&text), None, "{text}");
        }
    }

    #[test]
    fn a_parsed_token_is_not_shown() {
        let (_, text, _) = mint("default");
        let parsed = parse(&text).unwrap();
        assert!(!format!("{parsed:?}").contains(parsed.secret));
    }
}
