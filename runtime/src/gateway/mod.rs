//! Every way out of the machine: authorise, claim, send, settle; or replay what is recorded.
//!
//! Nothing leaves before its claim has committed, nothing is sent twice by itself, and a credential never reaches a
//! guest, a log, an error or the ledger.

pub(crate) mod addresses;
pub(crate) mod answer;
mod attempt;
pub mod callback;
mod caller;
mod closed;
pub(crate) mod digest;
pub(crate) mod egress;
pub mod files;
mod flow;
mod http_call;
pub mod incoming;
mod lookup;
pub(crate) mod mask;
pub mod messaging;
pub(crate) mod pace;
mod plan;
pub mod provider;
pub(crate) mod request;
pub(crate) mod reserved;
mod resolver;
mod settle;
mod signals;
mod slots;
mod tenant_limits;
mod tenant_profiles;
pub(crate) mod transport;
mod trust;
mod turns;
mod upload;
pub mod vault;

use std::sync::Arc;

pub use answer::seal as seal_answer;
pub use attempt::{Attempt, Ending, Lease};
pub use closed::{ClosedWorld, Lead};
pub use request::{
    Error, Identity, Lookup, LookupCondition, Options, Refusal, Request, Response, Source, Stop, is_host_header,
};
pub use reserved::is_reserved;
pub use signals::{Refused as SignalRefused, Signal};
pub use tenant_limits::TenantLimits;
pub use trust::check as check_ca;
pub use turns::Turn;
pub use upload::{Broken, Pieces, Upload, Written};

use crate::clock::Clock;
use crate::config::{GatewayConfig, SignalsConfig, WebhooksConfig};
use crate::probe::Probe;
use crate::store::Store;
use crate::threads::Threads;
use crate::wakes::Wakes;

/// What all attempts of a node share.
#[derive(Debug)]
pub struct Gateway {
    store: Store,
    vault: vault::Vault,
    profiles: provider::Profiles,
    tenant_profiles: tenant_profiles::TenantProfiles,
    tenant_limits: tenant_limits::AllLimits,
    resolver: resolver::Resolver,
    transport: transport::Transport,
    messaging: messaging::Servers,
    grants: files::Grants,
    config: GatewayConfig,
    signals: SignalsConfig,
    webhooks: WebhooksConfig,
    wakes: Arc<Wakes>,
    clock: Arc<dyn Clock>,
    probe: Arc<dyn Probe>,
    threads: Threads,
}

/// What a gateway is made of.
#[derive(Debug)]
pub struct Parts {
    pub store: Store,
    pub vault: vault::Vault,
    pub config: GatewayConfig,
    pub signals: SignalsConfig,
    pub webhooks: WebhooksConfig,
    pub grants: files::Grants,
    pub wakes: Arc<Wakes>,
    pub clock: Arc<dyn Clock>,
    pub probe: Arc<dyn Probe>,
    pub threads: Threads,
    /// None in every node that serves.
    pub closed: Option<Arc<dyn ClosedWorld>>,
}

impl Gateway {
    /// Fails when a provider profile cannot be used.
    pub fn new(parts: Parts) -> Result<Self, provider::ProfileError> {
        let Parts { store, vault, config, signals, webhooks, grants, wakes, clock, probe, threads, closed } = parts;
        let profiles = provider::Profiles::load(config.profiles_dir.as_deref())?;
        let resolver = resolver::Resolver::new(&config, closed);
        let transport = transport::Transport::new(clock.clone());
        let tenant_profiles = tenant_profiles::TenantProfiles::default();
        let messaging = messaging::Servers::new(transport.roots());
        Ok(Self {
            store,
            vault,
            profiles,
            tenant_profiles,
            tenant_limits: tenant_limits::AllLimits::default(),
            resolver,
            transport,
            messaging,
            grants,
            config,
            signals,
            webhooks,
            wakes,
            clock,
            probe,
            threads,
        })
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub fn probe(&self) -> &Arc<dyn Probe> {
        &self.probe
    }

    /// Where work for tenants is done, in turns.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    pub fn wakes(&self) -> &Arc<Wakes> {
        &self.wakes
    }

    pub fn profiles(&self) -> &provider::Profiles {
        &self.profiles
    }

    pub fn vault(&self) -> &vault::Vault {
        &self.vault
    }
}
