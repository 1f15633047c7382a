//! Every way out of the machine: authorise, claim, send, settle; or replay what is recorded.
//!
//! Nothing leaves before its claim has committed, nothing is sent twice by itself, and a credential never reaches a
//! guest, a log, an error or the ledger.

mod answer;
mod attempt;
mod caller;
mod digest;
mod egress;
mod flow;
mod http_call;
mod lookup;
mod mask;
mod plan;
pub mod provider;
mod request;
mod settle;
mod slots;
mod tenant_profiles;
mod transport;
pub mod vault;

use std::sync::Arc;

pub use attempt::{Attempt, Lease};
pub use request::{Error, Identity, Lookup, LookupCondition, Options, Refusal, Request, Response, Source, Stop};

use crate::clock::Clock;
use crate::config::GatewayConfig;
use crate::probe::Probe;
use crate::store::Store;

/// What all attempts of a node share.
#[derive(Debug)]
pub struct Gateway {
    store: Store,
    vault: vault::Vault,
    profiles: provider::Profiles,
    tenant_profiles: tenant_profiles::TenantProfiles,
    transport: transport::Transport,
    config: GatewayConfig,
    clock: Arc<dyn Clock>,
    probe: Arc<dyn Probe>,
}

impl Gateway {
    /// Fails when a provider profile cannot be used.
    pub fn new(
        store: Store,
        vault: vault::Vault,
        config: GatewayConfig,
        clock: Arc<dyn Clock>,
        probe: Arc<dyn Probe>,
    ) -> Result<Self, provider::ProfileError> {
        let profiles = provider::Profiles::load(config.profiles_dir.as_deref())?;
        let transport = transport::Transport::new(clock.clone());
        let tenant_profiles = tenant_profiles::TenantProfiles::default();
        Ok(Self { store, vault, profiles, tenant_profiles, transport, config, clock, probe })
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub fn probe(&self) -> &Arc<dyn Probe> {
        &self.probe
    }

    pub fn profiles(&self) -> &provider::Profiles {
        &self.profiles
    }

    pub fn vault(&self) -> &vault::Vault {
        &self.vault
    }
}
