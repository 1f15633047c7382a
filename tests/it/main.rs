//! All integration tests: real PostgreSQL, real components, real HTTP over sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop there")]

mod harness;

mod bindings;
mod effects;
mod egress;
mod secrets;
