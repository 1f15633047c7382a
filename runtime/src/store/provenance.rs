//! Who did something, as it is recorded: copied from the token, so that it stays when the token is gone. Never a secret.

use uuid::Uuid;

/// Who brings code in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// The owner of a token; its label as it is now.
    Token { token_id: Uuid, label: String },
    /// Whoever runs the host: what it brings along itself.
    Operator,
}

impl By {
    /// The kind as it is stored.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Token { .. } => "token",
            Self::Operator => "operator",
        }
    }

    pub const fn token_id(&self) -> Option<Uuid> {
        match self {
            Self::Token { token_id, .. } => Some(*token_id),
            Self::Operator => None,
        }
    }

    pub fn label(&self) -> Option<&str> {
        match self {
            Self::Token { label, .. } => Some(label),
            Self::Operator => None,
        }
    }
}
