//! All integration tests: real PostgreSQL, real components, real HTTP over sockets.

mod harness;

mod bindings;
mod effects;
mod egress;
mod secrets;
