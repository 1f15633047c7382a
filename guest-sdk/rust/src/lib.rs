//! Write Deedbox activities in Rust.
//!
//! An activity is an ordinary function with `#[activity]`. What it changes in the outside world it
//! changes through [`Context::http`], [`Context::messages`] and [`Context::files`], where the host claims
//! each effect before it is made and answers it from the record when the activity runs again. This crate holds no policy and keeps no
//! record of its own: it only gives the host's interface the shape of Rust.
#![doc = include_str!("../README.md")]

mod activity;
pub mod checkpoint;
mod component;
mod context;
mod failure;
pub mod files;
mod host;
pub mod http;
#[cfg(target_family = "wasm")]
mod logging;
pub mod messaging;
pub mod signals;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

#[rustfmt::skip]
#[allow(
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::unwrap_used,
    unsafe_code,
    unused_imports,
    reason = "generated: it passes pointers, and exports only for wasm"
)]
#[path = "generated/activity.rs"]
mod bindings;

pub use context::{Context, Key, KeyError, Run};
pub use deedbox_guest_macros::{activity, data};
pub use failure::{Failure, FailureKind};
pub use serde_json;

/// What nearly every activity uses.
pub mod prelude {
    pub use crate::http::OnUnknown;
    pub use crate::serde_json::{Value, json};
    pub use crate::{Context, Failure, activity, data};
}

/// What the attributes expand to. Not part of the interface of this crate.
#[doc(hidden)]
pub mod __private {
    pub use crate::Context;
    pub use crate::activity::{CallResult, Registration, Schemas, call, schemas};
    pub use {inventory, schemars, serde};
}
