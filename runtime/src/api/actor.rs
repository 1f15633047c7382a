//! Who did something, as answers show it. It was copied when it was done: the token may be gone by now. Never its secret.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Actor {
    kind: ActorKind,
    token_id: Option<String>,
    /// What the token was called.
    label: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActorKind {
    Token,
    /// Whoever runs the host.
    Operator,
    /// It was done before it was recorded.
    Unknown,
}

impl Actor {
    /// As it is stored.
    pub fn recorded(kind: &str, token_id: Option<Uuid>, label: Option<String>) -> Self {
        let kind = match kind {
            "token" => ActorKind::Token,
            "operator" => ActorKind::Operator,
            _ => ActorKind::Unknown,
        };
        Self { kind, token_id: token_id.map(text), label }
    }

    pub fn token(token_id: Uuid, label: String) -> Self {
        Self { kind: ActorKind::Token, token_id: Some(text(token_id)), label: Some(label) }
    }
}

/// A token's id as the token's text shows it.
fn text(token_id: Uuid) -> String {
    token_id.simple().to_string()
}
