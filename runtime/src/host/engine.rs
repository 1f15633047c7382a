//! The one constructor of a wasmtime engine, and compiled modules ready to be instantiated.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig};

use super::bindings::ActivityPre;
use super::guest::Guest;
use super::link;
use crate::config::HostConfig;
use crate::threads::{Kind, Threads};

/// Places of their own for `describe` at uploads, so that uploads and attempts do not wait for each other.
const DESCRIBING: usize = 2;

/// wasmtime, with the places for instances.
pub struct Engine {
    pub(super) wasmtime: wasmtime::Engine,
    linker: Linker<Guest>,
    pub(super) config: HostConfig,
    instances: Arc<Semaphore>,
    pub(super) describing: Semaphore,
    pub(super) threads: Threads,
    ticking: Arc<AtomicBool>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A compiled component, linked up to its instantiation.
pub struct Module {
    pub(super) pre: ActivityPre<Guest>,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Module")
    }
}

impl Engine {
    pub fn new(config: HostConfig) -> wasmtime::Result<Arc<Self>> {
        let wasmtime = wasmtime::Engine::new(&engine_config(&config))?;
        let mut linker = Linker::new(&wasmtime);
        link::imports(&mut linker)?;
        let ticking = Arc::new(AtomicBool::new(true));
        tick(wasmtime.weak(), ticking.clone(), config.epoch_ms);
        let instances = Arc::new(Semaphore::new(config.max_instances as usize));
        let (describing, threads) = (Semaphore::new(DESCRIBING), Threads::start(Kind::Guests, config.guest_threads)?);
        Ok(Arc::new(Self { wasmtime, linker, config, instances, describing, threads, ticking }))
    }

    /// The engine that compiles and loads components.
    pub fn wasmtime(&self) -> &wasmtime::Engine {
        &self.wasmtime
    }

    pub fn config(&self) -> &HostConfig {
        &self.config
    }

    /// The places for instances: an attempt holds one for as long as it runs.
    pub fn instances(&self) -> &Arc<Semaphore> {
        &self.instances
    }

    /// Links a component. The error names the import or export that does not fit.
    pub fn link(&self, component: &Component) -> wasmtime::Result<Module> {
        Ok(Module { pre: ActivityPre::new(self.linker.instantiate_pre(component)?)? })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.ticking.store(false, Ordering::Relaxed);
    }
}

fn engine_config(config: &HostConfig) -> Config {
    let memory = usize::try_from(config.max_memory_bytes).unwrap_or(usize::MAX);
    let components = config.max_instances + DESCRIBING as u32;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(components)
        .total_core_instances(components.saturating_mul(config.max_core_instances))
        .total_memories(components.saturating_mul(config.max_memories))
        .total_tables(components.saturating_mul(config.max_tables))
        .total_stacks(components)
        .max_core_instances_per_component(config.max_core_instances)
        .max_memories_per_component(config.max_memories)
        .max_tables_per_component(config.max_tables)
        .max_tables_per_module(config.max_tables)
        .table_elements(config.max_table_elements as usize)
        .max_memory_size(memory)
        .linear_memory_keep_resident(64 << 10);
    let mut engine = code_config();
    engine
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool))
        .max_wasm_stack(config.max_stack_bytes)
        // A host call that begins at the end of the guest's stack needs room of its own.
        .async_stack_size(config.max_stack_bytes + (1 << 20));
    engine
}

/// All that compiled code depends on. The pool and the stacks are no part of it: they are the same for code of any maker.
fn code_config() -> Config {
    let mut engine = Config::new();
    engine
        .memory_init_cow(true)
        .epoch_interruption(true)
        .concurrency_support(false)
        .cranelift_opt_level(OptLevel::Speed);
    engine
}

/// An engine that compiles for those that run, and runs nothing itself. It reserves no memory for instances, so that the memory
/// of its process can be bounded.
pub fn compiling_engine() -> wasmtime::Result<wasmtime::Engine> {
    wasmtime::Engine::new(&code_config())
}

/// A number that is the same for engines of which one can load the code that the other made. Another wasmtime, other settings or
/// another processor give another.
pub fn compatibility(engine: &wasmtime::Engine) -> u64 {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish()
}

/// Moves the epoch on, by which running guests see that time passes.
fn tick(engine: wasmtime::EngineWeak, ticking: Arc<AtomicBool>, epoch_ms: u64) {
    std::thread::spawn(move || {
        while ticking.load(Ordering::Relaxed) {
            std::thread::sleep(crate::config::ms(epoch_ms));
            match engine.upgrade() {
                Some(engine) => engine.increment_epoch(),
                None => return,
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_the_compiling_engine_is_code_of_the_running_one() {
        let of_two_sizes = [4, 8].map(|max_instances| {
            let config = HostConfig { max_instances, max_memory_bytes: 64 << 20, ..HostConfig::default() };
            Engine::new(config).unwrap()
        });
        let compiling = compatibility(&compiling_engine().unwrap());
        for running in of_two_sizes {
            assert_eq!(compatibility(running.wasmtime()), compiling);
        }
        let mut other = code_config();
        other.epoch_interruption(false);
        assert_ne!(compatibility(&wasmtime::Engine::new(&other).unwrap()), compiling);
    }
}
