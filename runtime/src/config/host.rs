//! What guests may use on one node.

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
        }
    }
}
