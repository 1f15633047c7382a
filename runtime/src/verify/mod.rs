//! `deedbox verify`: if this body runs twice with the same input, is the outside world the same as if it ran once? An activity
//! runs on real nodes in a closed world: a ledger of its own, and simulated providers that keep books. Then it runs again with a
//! death at each point, a lost lease, a provider in trouble; and the books are compared.
//!
//! It judges by what providers have booked, never by what a run says of itself; and it must never reach a place outside the
//! machine unless it is told to.

mod actor;
mod cases;
mod compare;
mod conventions;
mod differ;
mod drive;
mod evidence;
pub mod finding;
mod look;
mod plan;
mod points;
mod providers;
pub mod report;
mod stage;
mod suite;

pub use plan::{Group, Page, Plan, Provider};
pub use suite::verify;

/// Why a verification came to no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's mistake, in words.
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Store(#[from] crate::store::Error),
    #[error(transparent)]
    Node(#[from] crate::node::Error),
    #[error("the component cannot be used: {0}")]
    Component(#[from] crate::registry::Error),
    #[error("a simulated provider failed: {0}")]
    Provider(String),
    #[error("the node of a case came to no end: {0}")]
    Actor(String),
    #[error("the files of the verification: {0}")]
    Io(#[from] std::io::Error),
}

impl From<deedbox_books::client::Error> for Error {
    fn from(error: deedbox_books::client::Error) -> Self {
        Self::Provider(error.to_string())
    }
}
