//! What guests may use on one node.

use std::path::PathBuf;

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostConfig {
    /// Instances at once. Runs beyond it stay queued.
    pub max_instances: u32,
    /// Linear memory of one instance: the ceiling for every deployment. Growing beyond it fails in the guest.
    pub max_memory_bytes: u64,
    /// Linear memory of one instance where the deployment says nothing.
    pub default_memory_bytes: u64,
    /// Elements of one table. Growing beyond it fails in the guest.
    pub max_table_elements: u32,
    /// The guest's stack. Beyond it the attempt ends as `stack-overflow`.
    pub max_stack_bytes: usize,
    /// Time between two checks of a running guest's deadline.
    pub epoch_ms: u64,
    /// What is kept of each of stdout and stderr of one attempt; the rest is dropped and marked as truncated.
    pub max_log_bytes: usize,
    /// An output above it ends the run as failed with `result-too-large`.
    pub max_output_bytes: usize,
    /// A checkpoint above it is refused with `too-large`.
    pub max_checkpoint_bytes: usize,
    /// Time for `describe` at upload; beyond it the upload is refused.
    pub describe_timeout_ms: u64,
    /// How long a guest that is asked to stop may take to return by itself. Then it is dropped.
    pub stop_ms: u64,
    /// Bytes that one host call may make the host allocate for the guest's arguments; beyond it the attempt traps.
    pub max_call_bytes: usize,
    /// The program that compiles: a `deedbox` of this very version. This program itself when absent.
    pub compiler: Option<PathBuf>,
    /// Components that are compiled at once, each in a process of its own. More wait, and one tenant leaves a place to others.
    pub max_compilations: usize,
    /// Threads of each such process.
    pub compile_threads: usize,
    /// Time for compiling one component, from when it has a place. Then its process is killed and the upload refused.
    pub max_compile_ms: u64,
    /// Processor time of all threads for compiling one component, in whole seconds, rounded up. Beyond it the upload is refused.
    pub max_compile_cpu_ms: u64,
    /// Memory for compiling one component. Beyond it the upload is refused.
    pub max_compile_bytes: u64,
    /// Compiled code of one component. Beyond it the upload is refused.
    pub max_code_bytes: usize,
    /// Compiled code on this node's disk. Beyond it the code that was used longest ago is removed, and compiled again when needed.
    pub max_cache_bytes: u64,
    /// Compiled code that is kept ready in memory. Beyond it the module that was used longest ago is read from disk when needed.
    pub max_loaded_bytes: u64,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            max_instances: 64,
            max_memory_bytes: 512 << 20,
            default_memory_bytes: 128 << 20,
            max_table_elements: 20_000,
            max_stack_bytes: 512 << 10,
            epoch_ms: 10,
            max_log_bytes: 256 << 10,
            max_output_bytes: 2 << 20,
            max_checkpoint_bytes: 64 << 10,
            describe_timeout_ms: 5_000,
            stop_ms: 100,
            max_call_bytes: 16 << 20,
            compiler: None,
            max_compilations: 2,
            compile_threads: 2,
            max_compile_ms: 90_000,
            max_compile_cpu_ms: 60_000,
            max_compile_bytes: 2 << 30,
            max_code_bytes: 256 << 20,
            max_cache_bytes: 4 << 30,
            max_loaded_bytes: 1 << 30,
        }
    }
}

impl HostConfig {
    pub(super) fn compile_rules(&self) -> [(bool, &'static str, &'static str); 5] {
        [
            (self.max_compilations >= 1, "host.max_compilations", "must be at least 1"),
            ((1..=64).contains(&self.compile_threads), "host.compile_threads", "must be 1 to 64"),
            (self.max_compile_ms >= 100, "host.max_compile_ms", "must be at least 100"),
            (self.max_compile_cpu_ms >= 1_000, "host.max_compile_cpu_ms", "must be at least 1000"),
            // The program itself needs some of it before it reads the first byte.
            (self.max_compile_bytes >= 64 << 20, "host.max_compile_bytes", "must be at least 67108864"),
        ]
    }
}
