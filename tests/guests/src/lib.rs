//! One component with many small activities, for the integration tests of the host.
//!
//! There is one file for each WIT interface, one for the limits and one for WASI. Some activities
//! misbehave on purpose; none may hide what the host did.

mod activities;
mod checkpoint;
mod context;
mod files;
mod http;
mod idempotency;
mod limits;
mod messaging;
mod signals;
mod then;
mod wasi;
