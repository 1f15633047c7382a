//! What one attempt may use: the least of what its policy, its tenant and the host allow. Data; nothing here acts on it.

use std::time::Duration;

use crate::config::{HostConfig, ms};
use crate::gateway::TenantLimits;
use crate::policy::Limits;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub memory_bytes: u64,
    pub cpu: Duration,
    pub host_calls: u64,
    pub host_calls_per_s: u64,
    /// Of each of stdout and stderr.
    pub log_bytes: usize,
    pub output_bytes: usize,
}

impl Bounds {
    /// Where the policy says nothing, the host's default counts.
    pub fn new(host: &HostConfig, policy: &Limits, tenant: &TenantLimits) -> Self {
        let least = |asked: Option<u64>, default: u64, ceiling: u64, tenants: Option<u64>| {
            asked.unwrap_or(default).min(ceiling).min(tenants.unwrap_or(u64::MAX))
        };
        let bytes = |asked: Option<u64>, ceiling: usize, tenants: Option<u64>| {
            usize::try_from(least(asked, u64::MAX, ceiling as u64, tenants)).unwrap_or(ceiling)
        };
        Self {
            memory_bytes: least(
                policy.memory_bytes,
                host.default_memory_bytes,
                host.max_memory_bytes,
                tenant.memory_bytes,
            ),
            cpu: ms(least(policy.cpu_ms, host.default_cpu_ms, host.max_cpu_ms, tenant.cpu_ms)),
            host_calls: least(policy.host_calls, host.default_host_calls, host.max_host_calls, tenant.host_calls),
            host_calls_per_s: least(
                policy.host_calls_per_s,
                host.default_host_calls_per_s,
                host.max_host_calls_per_s,
                tenant.host_calls_per_s,
            ),
            log_bytes: bytes(policy.log_bytes, host.max_log_bytes, tenant.log_bytes),
            output_bytes: bytes(policy.output_bytes, host.max_output_bytes, tenant.output_bytes),
        }
    }

    /// Those of an attempt whose policy and tenant say nothing.
    pub fn defaults(host: &HostConfig) -> Self {
        Self::new(host, &Limits::default(), &TenantLimits::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_counts_and_the_default_where_nothing_is_said() {
        let host = HostConfig::default();
        let (none, free) = (Limits::default(), TenantLimits::default());
        assert_eq!(Bounds::defaults(&host).cpu, ms(host.default_cpu_ms));
        assert_eq!(Bounds::defaults(&host).log_bytes, host.max_log_bytes);
        let asked = |cpu_ms| Limits { cpu_ms: Some(cpu_ms), log_bytes: Some(cpu_ms), ..Limits::default() };
        let above = host.max_cpu_ms + 1;
        assert_eq!(Bounds::new(&host, &asked(above), &free).cpu, ms(host.max_cpu_ms));
        assert_eq!(Bounds::new(&host, &asked(7), &free).cpu, ms(7));
        assert_eq!(Bounds::new(&host, &asked(7), &free).log_bytes, 7);
        let tenant = TenantLimits { cpu_ms: Some(5), log_bytes: Some(5), ..TenantLimits::default() };
        assert_eq!(Bounds::new(&host, &asked(7), &tenant).cpu, ms(5));
        assert_eq!(Bounds::new(&host, &asked(7), &tenant).log_bytes, 5);
        assert_eq!(Bounds::new(&host, &none, &tenant).cpu, ms(5));
    }
}
