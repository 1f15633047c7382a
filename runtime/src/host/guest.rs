//! The state behind one instance: what its imports work on.

use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use tokio::time::Instant;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::bounds::Bounds;
use super::clocks;
use super::limits::Limiter;
use super::meter::Meter;
use super::stdio::Capture;
use super::untaken::Untaken;
use super::wasi_http::{Outbound, Stops};
use crate::config::HostConfig;
use crate::gateway::Attempt;
use crate::key::EffectId;

/// What a guest may know about its run.
#[derive(Clone, Debug)]
pub struct RunInfo {
    pub activity: String,
    pub attempt: u32,
    pub max_attempts: u32,
}

/// A call that needs a run was made while the module was described.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not there while the module is described: `describe` must only describe")]
pub struct NoRun(pub &'static str);

pub struct Guest {
    wasi: WasiCtx,
    table: ResourceTable,
    pub limiter: Limiter,
    pub meter: Meter,
    pub deadline: Instant,
    run: Option<(Arc<Attempt>, RunInfo)>,
    pub stdout: Capture,
    pub stderr: Capture,
    pub max_checkpoint_bytes: usize,
    /// The guest has been told that there are no sockets.
    pub sockets_denied: bool,
    http: WasiHttpCtx,
    outbound: Outbound,
}

/// What differs from instance to instance.
pub struct Setting {
    pub bounds: Bounds,
    pub deadline: Instant,
    /// The seed of the guest's random numbers; none: fresh ones.
    pub random_seed: Option<[u8; 32]>,
    pub run: Option<(Arc<Attempt>, RunInfo)>,
}

impl Guest {
    pub fn new(config: &HostConfig, setting: Setting) -> Self {
        let bounds = setting.bounds;
        let (stdout, stderr) = (Capture::new(bounds.log_bytes), Capture::new(bounds.log_bytes));
        let mut wasi = WasiCtxBuilder::new();
        wasi.stdout(stdout.clone()).stderr(stderr.clone());
        wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false).max_random_size(config.max_random_bytes);
        clocks::coarsen(&mut wasi, config.clock_resolution_us);
        if let Some(seed) = setting.random_seed {
            stable_random(&mut wasi, seed);
        }
        let attempt = setting.run.as_ref().map(|(attempt, _)| attempt.clone());
        let untaken = Untaken::new(config.max_untaken_bytes);
        let outbound = Outbound { attempt, stops: Stops::default(), stderr: stderr.clone(), untaken };
        let mut table = ResourceTable::new();
        table.set_max_capacity(config.max_resources);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(config.max_field_bytes);
        Self {
            wasi: wasi.build(),
            table,
            limiter: Limiter::new(bounds.memory_bytes, config),
            meter: Meter::new(&bounds, Instant::now()),
            deadline: setting.deadline,
            run: setting.run,
            stdout,
            stderr,
            max_checkpoint_bytes: config.max_checkpoint_bytes,
            sockets_denied: false,
            http,
            outbound,
        }
    }

    /// Where calls over `wasi:http` say that the attempt must end.
    pub fn stops(&self) -> Stops {
        self.outbound.stops.clone()
    }

    /// The guest has taken an answer over `wasi:http`.
    pub fn handed(&self, effect: Option<EffectId>) {
        if let (Some((attempt, _)), Some(effect)) = (&self.run, effect) {
            attempt.hand(effect);
        }
    }

    /// The attempt that the guest works for.
    pub fn attempt(&self, call: &'static str) -> Result<Arc<Attempt>, NoRun> {
        self.run.as_ref().map(|(attempt, _)| attempt.clone()).ok_or(NoRun(call))
    }

    pub fn run_info(&self) -> Result<RunInfo, NoRun> {
        self.run.as_ref().map(|(_, info)| info.clone()).ok_or(NoRun("context"))
    }
}

/// Three independent streams from one seed: the secure one, the insecure one, and the seed for hash maps.
fn stable_random(wasi: &mut WasiCtxBuilder, seed: [u8; 32]) {
    let stream = |number: u64| {
        let mut rng = ChaCha20Rng::from_seed(seed);
        rng.set_stream(number);
        rng
    };
    let mut half = [0; 16];
    half.copy_from_slice(&blake3::derive_key("deedbox 2026 random hash seed", &seed)[..16]);
    wasi.secure_random(stream(0)).insecure_random(stream(1)).insecure_random_seed(u128::from_le_bytes(half));
}

/// Every call of the guest to WASI comes by here once.
impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.meter.call();
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// And every call to `wasi:http` here.
impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.meter.call();
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.table, hooks: &mut self.outbound }
    }
}
