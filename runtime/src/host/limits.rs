//! What one instance may grow to, and whether it tried to grow beyond.

use wasmtime::ResourceLimiter;

use crate::config::HostConfig;

#[derive(Debug)]
pub struct Limiter {
    memory: Room,
    elements: Room,
    /// All linear memories together, at most.
    pub peak: usize,
    /// What the guest was refused last: a guest that traps after this ran out of it.
    pub denied: Option<Denied>,
    most: Most,
}

/// How many there may be in one instance.
#[derive(Clone, Copy, Debug)]
struct Most {
    instances: usize,
    tables: usize,
    memories: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    Memory,
    TableElements,
}

impl Denied {
    pub const fn code(self) -> &'static str {
        match self {
            Self::Memory => "out-of-memory",
            Self::TableElements => "out-of-tables",
        }
    }
}

/// What all of a kind together may take.
#[derive(Debug)]
struct Room {
    most: usize,
    used: usize,
}

impl Room {
    fn grows(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> bool {
        let used = self.used.saturating_add(desired.saturating_sub(current));
        let fits = used <= self.most && maximum.is_none_or(|maximum| desired <= maximum);
        if fits {
            self.used = used;
        }
        fits
    }
}

impl Limiter {
    pub fn new(memory_bytes: u64, config: &HostConfig) -> Self {
        let room = |most| Room { most, used: 0 };
        Self {
            memory: room(usize::try_from(memory_bytes).unwrap_or(usize::MAX)),
            elements: room(config.max_table_elements as usize),
            peak: 0,
            denied: None,
            most: Most {
                instances: config.max_core_instances as usize,
                tables: config.max_tables as usize,
                memories: config.max_memories as usize,
            },
        }
    }

    fn judged(&mut self, fits: bool, what: Denied) -> wasmtime::Result<bool> {
        if !fits {
            self.denied = Some(what);
        }
        Ok(fits)
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let fits = self.memory.grows(current, desired, maximum);
        self.peak = self.peak.max(self.memory.used);
        self.judged(fits, Denied::Memory)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let fits = self.elements.grows(current, desired, maximum);
        self.judged(fits, Denied::TableElements)
    }

    fn instances(&self) -> usize {
        self.most.instances
    }

    fn tables(&self) -> usize {
        self.most.tables
    }

    fn memories(&self) -> usize {
        self.most.memories
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tables_share_one_room_and_so_do_all_memories() {
        let config = HostConfig { max_table_elements: 100, ..HostConfig::default() };
        let mut limiter = Limiter::new(1000, &config);
        assert!(limiter.table_growing(0, 60, None).unwrap() && limiter.table_growing(0, 30, None).unwrap());
        assert!(!limiter.table_growing(30, 50, None).unwrap(), "10 are left");
        assert_eq!(limiter.denied, Some(Denied::TableElements));
        assert!(limiter.table_growing(30, 40, None).unwrap());
        assert!(limiter.memory_growing(0, 600, None).unwrap());
        assert!(!limiter.memory_growing(0, 600, None).unwrap());
        assert!(!limiter.memory_growing(0, 100, Some(50)).unwrap());
        assert_eq!((limiter.denied, limiter.peak), (Some(Denied::Memory), 600));
    }
}
