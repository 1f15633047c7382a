//! A provider that keeps books: a small real HTTP/1.1 server that charges, declines, stalls, lies and hangs up on request, and
//! writes down on disk what arrived and what it applied. Tests and the demo assert on those books, never on what a client believes.
//! It plays the conventions about keys that real providers have. It must never book an application twice under a key that its
//! convention says it remembers, and never answer before the line it speaks of is on the disk.

mod answer;
pub mod behaviour;
pub mod carrier;
pub mod client;
mod control;
pub mod convention;
mod files;
mod graphql;
mod keys;
mod kinds;
pub mod lookup;
mod object;
mod operation;
mod place;
pub mod record;
mod reply;
mod request;
mod server;
mod state;
pub mod template;
mod world;

pub use behaviour::Behaviour;
pub use carrier::{Carrier, Charset, Grammar};
pub use client::Books;
pub use convention::{Convention, CountedFrom, InFlight, ObjectPath, OnMismatch, OnRepeat, Stores};
pub use kinds::{KINDS, Kind};
pub use lookup::{List, LookUp};
pub use record::{Arrival, Entry};
pub use server::{Error, Options, Provider};
pub use template::Template;
