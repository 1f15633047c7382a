//! All integration tests: real PostgreSQL, real components, real HTTP over sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop there")]

mod harness;

mod api;
mod bindings;
mod bindings_go;
mod chaos;
mod cli;
mod conventions;
mod crash_matrix;
mod crash_process;
mod effect_model;
mod effect_states;
mod effects;
mod egress;
mod files;
mod hazards;
mod keys;
mod lease_model;
mod messaging;
mod neighbours;
mod openwop;
mod pace;
mod questions;
mod registry;
mod resolving;
mod sandbox;
mod scheduling;
mod schema;
mod sdk;
mod secrets;
mod signals;
mod tidy;
mod trust;
mod verify;
mod wasi_http;
mod wat_component;
mod webhooks_out;
mod worker;
