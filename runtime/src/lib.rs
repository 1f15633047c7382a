//! A WebAssembly activity runtime whose side effects happen once.
//!
//! Modules in reading order, from the outside in; each uses only those below it.

#[cfg(any(test, fuzzing))]
pub mod fuzzing;

pub mod cli;

pub mod verify;

pub mod node;

pub mod api;
pub mod worker;

pub mod registry;

pub mod host;

pub mod gateway;
pub mod wakes;

pub mod store;

pub mod clock;
pub mod config;
pub mod effect;
pub mod key;
pub mod policy;
pub mod postgres;
pub mod probe;
pub mod signature;
pub mod threads;
pub mod token;
pub mod webhook;
