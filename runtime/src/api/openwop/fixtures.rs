//! The workflows that conformance suites start: a real component, which the binary carries, deployed as activities of a
//! tenant. Doing it again changes nothing. The operator answers for it: it needs no signature.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::policy::Policy;
use crate::registry::{self, Prepared, Registry};
use crate::store::provenance::By;
use crate::store::{Store, activity};

/// Made of `fixtures/openwop.wat` when this is built.
const COMPONENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openwop.wasm"));

/// What discovery names.
pub const NAMES: [&str; 3] = ["conformance-noop", "conformance-delay", "conformance-failure"];

/// Posts to an address that its caller names: only for the seam of that name.
pub const EFFECT_RETRY: &str = "conformance-effect-retry";
/// What that one calls its effect, and the profile that it is sent under.
pub const EFFECT: &str = "effect-retry";
pub const PROFILE: &str = "generic";

/// Deploys the workflows of [`NAMES`] for a tenant.
pub async fn install(registry: &Registry, store: &Store, tenant: &str) -> Result<(), registry::Error> {
    for name in NAMES {
        deploy(registry, store, tenant, name, &json!({})).await?;
    }
    Ok(())
}

/// Deploys [`EFFECT_RETRY`] so that it may send to this origin.
pub async fn install_effect_retry(
    registry: &Registry,
    store: &Store,
    tenant: &str,
    origin: &str,
) -> Result<(), registry::Error> {
    let policy = json!({
        "egress": { "allow": [origin] },
        "providers": { origin: PROFILE },
        "retry": { "max_attempts": 5, "initial_interval": "100ms", "jitter": "none" },
    });
    deploy(registry, store, tenant, EFFECT_RETRY, &policy).await
}

async fn deploy(
    registry: &Registry,
    store: &Store,
    tenant: &str,
    name: &str,
    policy: &Value,
) -> Result<(), registry::Error> {
    let policy = Policy::parse(&policy.to_string()).map_err(registry::Error::Invalid)?;
    let policy = serde_json::to_string(&policy).map_err(|e| registry::Error::Internal(e.to_string()))?;
    let prepared = registry.prepare(tenant, Bytes::from_static(COMPONENT)).await?;
    let latest = activity::find_latest(store, tenant, name).await?;
    if latest.is_some_and(|latest| latest.digest == prepared.digest && latest.policy == policy) {
        return Ok(());
    }
    keep(store, tenant, &prepared).await?;
    let new = activity::NewVersion {
        activity: name,
        digest: &prepared.digest,
        export: name,
        policy: &policy,
        max_running: None,
        by: &By::Operator,
        signed: None,
    };
    activity::deploy(store, tenant, new).await?;
    Ok(())
}

async fn keep(store: &Store, tenant: &str, prepared: &Prepared) -> Result<(), registry::Error> {
    let mut tx = store.transaction().await?;
    prepared.store(&mut tx, tenant, &By::Operator).await?;
    tx.commit().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A component's preamble: the magic bytes, version 13, layer 1.
    #[test]
    fn the_binary_carries_a_component_with_every_workflow() {
        assert!(COMPONENT.starts_with(b"\0asm\x0d\0\x01\0"));
        for name in NAMES.into_iter().chain([EFFECT_RETRY, EFFECT]) {
            assert!(COMPONENT.windows(name.len()).any(|window| window == name.as_bytes()), "{name}");
        }
    }
}
