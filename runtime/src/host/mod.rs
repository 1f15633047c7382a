//! The sandbox: runs one attempt of one activity on wasmtime. One file per WIT interface translates between guest and
//! host; no policy lives here. What a guest does wrong is a value or ends its attempt, and touches nothing else.

mod bindings;
mod bounds;
mod checkpoint;
mod clocks;
mod context;
mod describe;
mod engine;
mod execute;
mod fields;
mod files;
mod guest;
mod http;
mod idempotency;
mod limits;
mod link;
mod messaging;
mod meter;
mod outcome;
mod signals;
mod sockets;
mod stdio;
mod untaken;
mod wasi_http;

pub use bindings::{is_known, known_in_words};
pub use bounds::Bounds;
pub use describe::{Descriptor, describe};
pub use engine::{Engine, Module, compatibility, compiling_engine};
pub use execute::{Ended, Execution, Used, execute};
pub use guest::RunInfo;
pub use outcome::{Failure, FailureKind, Outcome};
pub use sockets::warnings;
pub use stdio::Captured;
