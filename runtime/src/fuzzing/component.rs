//! Uploaded components, from their first byte to their imports.

use std::sync::{Arc, OnceLock};

use super::parts::text;
use crate::config::HostConfig;
use crate::host::{self, Engine};
use crate::registry::compile;

/// The first bytes of every component.
const PREAMBLE: &[u8] = b"\0asm\x0d\0\x01\0";

/// An upload. Nothing but a valid component is compiled, and one that is taken imports nothing that is not known.
pub fn component(input: &[u8]) {
    let taken = compile::check_header(input).is_ok();
    assert_eq!(taken, input.starts_with(PREAMBLE), "the header decides");
    let Some(engine) = engine().filter(|_| taken) else { return };
    let Some(component) = compile::here(engine, input) else { return };
    match compile::imports(engine, &component) {
        Ok(names) => assert!(names.iter().all(|name| host::is_known(name)), "an unknown import"),
        Err(problem) => assert!(!problem.to_string().is_empty()),
    }
    if let Err(problem) = compile::link(engine, &component) {
        assert!(!text(problem.to_string().as_bytes()).is_empty(), "a refusal says why");
    }
}

/// One for all inputs, with few places.
fn engine() -> Option<&'static Arc<Engine>> {
    static ENGINE: OnceLock<Option<Arc<Engine>>> = OnceLock::new();
    let config = HostConfig { max_instances: 1, max_memory_bytes: 1 << 20, epoch_ms: 60_000, ..HostConfig::default() };
    ENGINE.get_or_init(|| Engine::new(config).ok()).as_ref()
}
