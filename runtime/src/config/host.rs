//! What guests may use on one node. `default_…` holds where a deployment says nothing, `max_…` whatever it says; docs/limits.md
//! has all of them in one table.

use std::path::PathBuf;

use serde::Deserialize;

use crate::threads;

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostConfig {
    /// Instances at once. Runs beyond it stay queued.
    pub max_instances: u32,
    /// The part of the places that other tenants leave which one tenant cannot have: 25 is a quarter, so that of 64 places 16
    /// are free for whoever comes next, and of those 4 for the next after that. Runs beyond it stay queued. 0 where all
    /// tenants are one's own. Nothing is kept free of fewer than 4 places.
    pub reserved_percent: u32,
    /// Threads that run guests and nothing else. One tenant has all but a quarter of them at once, and all but one at least.
    /// 0: guests run on the threads of everything else, and one that computes makes everything wait.
    pub guest_threads: u32,
    /// Guests' clocks tell time in steps of this length. Sleeping is as exact as ever.
    pub clock_resolution_us: u64,
    /// Linear memory of one instance: the ceiling for every deployment. Growing beyond it fails in the guest.
    pub max_memory_bytes: u64,
    /// Linear memory of one instance where the deployment says nothing.
    pub default_memory_bytes: u64,
    /// Elements of all tables of one instance together. Growing beyond it fails in the guest.
    pub max_table_elements: u32,
    /// Tables, linear memories and core instances that one component may have; one with more is refused at upload. An adapter or
    /// a libc adds some to the guest's own.
    pub max_tables: u32,
    pub max_memories: u32,
    pub max_core_instances: u32,
    /// The guest's stack. Beyond it the attempt ends as `stack-overflow`.
    pub max_stack_bytes: usize,
    /// CPU time of one attempt, the guest's and that of the host in its calls. Beyond it the attempt ends as `out-of-fuel`.
    pub default_cpu_ms: u64,
    pub max_cpu_ms: u64,
    /// Calls of one attempt to the host. Beyond it the attempt ends as `out-of-calls`.
    pub default_host_calls: u64,
    pub max_host_calls: u64,
    /// Calls of one attempt to the host in a second; a second's worth may be made at once. Beyond it the guest is slowed down.
    pub default_host_calls_per_s: u64,
    pub max_host_calls_per_s: u64,
    /// Time between two checks of a running guest's deadline, CPU time and calls.
    pub epoch_ms: u64,
    /// What is kept of each of stdout and stderr of one attempt; the rest is dropped and marked as truncated.
    pub max_log_bytes: usize,
    /// An output above it ends the run as failed with `result-too-large`.
    pub max_output_bytes: usize,
    /// Levels of arrays and objects in an output; a deeper one ends the run as failed with `result-too-deep`.
    pub max_output_depth: usize,
    /// A checkpoint above it is refused with `too-large`.
    pub max_checkpoint_bytes: usize,
    /// Time for `describe` at upload; beyond it the upload is refused.
    pub describe_timeout_ms: u64,
    /// How long a guest that is asked to stop may take to return by itself. Then it is dropped.
    pub stop_ms: u64,
    /// Bytes that one host call may make the host allocate for the guest's arguments, or a result; beyond it the attempt ends as
    /// `call-too-large`.
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
    /// Resources of WASI that one instance may hold at once: streams, pollables, requests, headers. Beyond it the attempt ends
    /// as `out-of-resources`.
    pub max_resources: usize,
    /// Random bytes in one call; beyond it the attempt ends as `trap`.
    pub max_random_bytes: u64,
    /// Headers of one request over `wasi:http` while the guest puts them together, as they lie in memory. More are refused
    /// with `forbidden`.
    pub max_field_bytes: usize,
    /// Bodies of answers over `wasi:http` that a guest has not taken yet, all of an attempt together. A call whose answer does not
    /// fit any more fails with `HTTP-response-body-size`; its effect is recorded.
    pub max_untaken_bytes: usize,
}

/// The deepest JSON text that can be read at all.
const MOST_OUTPUT_DEPTH: usize = 127;

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            max_instances: 64,
            reserved_percent: 25,
            guest_threads: threads::enough(),
            clock_resolution_us: 1_000,
            max_memory_bytes: 512 << 20,
            default_memory_bytes: 128 << 20,
            max_table_elements: 20_000,
            max_tables: 8,
            max_memories: 2,
            max_core_instances: 16,
            max_stack_bytes: 512 << 10,
            default_cpu_ms: 30_000,
            max_cpu_ms: 3_600_000,
            default_host_calls: 10_000_000,
            max_host_calls: 1_000_000_000,
            default_host_calls_per_s: 100_000,
            max_host_calls_per_s: 1_000_000,
            epoch_ms: 10,
            max_log_bytes: 256 << 10,
            max_output_bytes: 2 << 20,
            max_output_depth: MOST_OUTPUT_DEPTH,
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
            max_resources: 10_000,
            max_random_bytes: 1 << 20,
            max_field_bytes: 128 << 10,
            max_untaken_bytes: 32 << 20,
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

    /// What must hold of them, with the name and the words for when it does not.
    pub(super) fn rules(&self) -> impl Iterator<Item = (bool, &'static str, &'static str)> {
        const NONE: &str = "must be at least 1";
        let within = |least: u64, most: u64| (1..=most).contains(&least);
        [
            (self.max_instances >= 1, "host.max_instances", NONE),
            (self.reserved_percent <= 90, "host.reserved_percent", "must be at most 90"),
            (self.guest_threads <= 1_024, "host.guest_threads", "must be at most 1024"),
            (
                (1..=1_000_000).contains(&self.clock_resolution_us),
                "host.clock_resolution_us",
                "must be from 1 to 1000000",
            ),
            (
                self.default_memory_bytes <= self.max_memory_bytes,
                "host.default_memory_bytes",
                "must not be above host.max_memory_bytes",
            ),
            (self.epoch_ms >= 1, "host.epoch_ms", NONE),
            (self.max_tables >= 1, "host.max_tables", NONE),
            (self.max_memories >= 1, "host.max_memories", NONE),
            (self.max_core_instances >= 1, "host.max_core_instances", NONE),
            (within(self.default_cpu_ms, self.max_cpu_ms), "host.default_cpu_ms", "must be 1 to host.max_cpu_ms"),
            (
                within(self.default_host_calls, self.max_host_calls),
                "host.default_host_calls",
                "must be 1 to host.max_host_calls",
            ),
            (
                within(self.default_host_calls_per_s, self.max_host_calls_per_s),
                "host.default_host_calls_per_s",
                "must be 1 to host.max_host_calls_per_s",
            ),
            ((1..=MOST_OUTPUT_DEPTH).contains(&self.max_output_depth), "host.max_output_depth", "must be 1 to 127"),
            (self.max_resources >= 100, "host.max_resources", "must be at least 100"),
            (self.max_field_bytes >= 1 << 10, "host.max_field_bytes", "must be at least 1024"),
        ]
        .into_iter()
    }
}
