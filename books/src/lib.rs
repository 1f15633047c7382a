//! A provider that keeps books: a small real HTTP/1.1 server that charges, declines, stalls, lies and hangs up on request, and
//! writes down on disk what arrived and what it applied. Tests and the demo assert on those books, never on what a client believes.
//! It must never book an application twice under one key in keyed mode, and never answer before the line it speaks of is on the disk.

mod answer;
pub mod behaviour;
pub mod client;
mod control;
mod files;
mod lookup;
mod operation;
pub mod record;
mod reply;
mod request;
mod server;
mod state;

pub use behaviour::Behaviour;
pub use client::Books;
pub use record::{Arrival, Entry};
pub use server::{Error, Options, Provider};
