//! What one instance may grow to, and whether it tried to grow beyond.

use wasmtime::ResourceLimiter;

#[derive(Debug)]
pub struct Limiter {
    memory_bytes: usize,
    table_elements: usize,
    /// All linear memories together, now and at most.
    used: usize,
    pub peak: usize,
    /// A guest that traps after this ran out of memory.
    pub denied: bool,
}

impl Limiter {
    pub fn new(memory_bytes: u64, table_elements: u32) -> Self {
        let memory_bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
        Self { memory_bytes, table_elements: table_elements as usize, used: 0, peak: 0, denied: false }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let used = self.used.saturating_add(desired.saturating_sub(current));
        if used > self.memory_bytes || maximum.is_some_and(|maximum| desired > maximum) {
            self.denied = true;
            return Ok(false);
        }
        self.used = used;
        self.peak = self.peak.max(used);
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let fits = desired <= self.table_elements && maximum.is_none_or(|maximum| desired <= maximum);
        self.denied |= !fits;
        Ok(fits)
    }
}
