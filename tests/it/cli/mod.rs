//! The command line: the real programs as processes, with their exit codes and their words.

mod commands;
mod control;
mod curl;
mod demo;
mod events;
mod fleet;
mod hooks;
mod keys;
mod modules;
pub mod program;
mod questions;
mod up;
