//! What the fuzzers call: one function for each reader of foreign bytes, and in it the laws that the reader must keep. It is
//! compiled for fuzzers and for tests alone; the tests put every stored input through it.
//!
//! A law is an assertion: whatever the bytes are, none may fail, and nothing may panic or take long. Nothing here may reach
//! a network, a disk or a clock, so that an input that fails once fails always.

mod callers;
mod component;
mod guests;
mod hooks;
mod json;
mod parts;
mod policies;
mod profiles;
mod providers;
#[cfg(test)]
mod tests;

pub use callers::{cursor, names, openwop_id, request_key, token};
pub use component::component;
pub use guests::{file_path, message, request};
pub use hooks::{hook, webhook};
pub use json::{canonical_json, input_schema, json_depth};
pub use policies::{ceiling, egress_url, policy};
pub use profiles::{carrier, pattern, profile, template};
pub use providers::{answer, mask};

/// A target's name, and what is called with each input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, in the order of their names.
pub const TARGETS: [Target; 23] = [
    ("answer", answer),
    ("canonical_json", canonical_json),
    ("carrier", carrier),
    ("ceiling", ceiling),
    ("component", component),
    ("cursor", cursor),
    ("egress_url", egress_url),
    ("file_path", file_path),
    ("hook", hook),
    ("input_schema", input_schema),
    ("json_depth", json_depth),
    ("mask", mask),
    ("message", message),
    ("names", names),
    ("openwop_id", openwop_id),
    ("pattern", pattern),
    ("policy", policy),
    ("profile", profile),
    ("request", request),
    ("request_key", request_key),
    ("template", template),
    ("token", token),
    ("webhook", webhook),
];
