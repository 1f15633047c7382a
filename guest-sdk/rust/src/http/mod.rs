//! HTTP through the ledger: a request, how its effect is told apart, and its answer.
//!
//! The host claims each effect before it sends it, and answers it from the record when it was sent
//! before. So nothing here may retry by itself, follow a redirect, or invent a header or a key.

mod error;
mod form;
mod lookup;
mod request;
mod response;

pub use error::Error;
pub use lookup::{Condition, Lookup};
pub use request::{Client, RequestBuilder};
pub use response::Response;

pub use crate::bindings::deedbox::activity::http::{BusinessKey, Identity, OnUnknown, Source};
