//! What bounds the runs of each tenant while they are carried out, read from the database and kept for a short time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Gateway;
use super::attempt::lock;
use crate::config::ms;
use crate::policy::Ceiling;
use crate::store;

/// How long a tenant's limits are kept in memory: changed ones hold everywhere after this time.
const KEEP: Duration = Duration::from_secs(5);

/// Tenants whose limits are kept; beyond it all are read anew.
const MAX_KEPT: usize = 4096;

/// The limits of a tenant that hold while its runs are carried out. None: no limit.
#[derive(Debug, Default)]
pub struct TenantLimits {
    pub memory_bytes: Option<u64>,
    /// One attempt, from when its module is ready to its end.
    pub attempt: Option<Duration>,
    pub sends_per_second: Option<f64>,
    /// These six are of one attempt, as `policy.limits` names them.
    pub cpu_ms: Option<u64>,
    pub host_calls: Option<u64>,
    pub host_calls_per_s: Option<u64>,
    pub log_bytes: Option<u64>,
    pub output_bytes: Option<u64>,
    pub open_sends: Option<u64>,
    pub egress: Option<Ceiling>,
}

impl TenantLimits {
    /// Those that bound what `policy.limits` may ask for, by its names, in its order.
    pub fn of_an_attempt(&self) -> [Option<u64>; 6] {
        [self.cpu_ms, self.host_calls, self.host_calls_per_s, self.log_bytes, self.output_bytes, self.open_sends]
    }
}

#[derive(Debug, Default)]
pub struct AllLimits(Mutex<HashMap<String, (Duration, Arc<TenantLimits>)>>);

impl Gateway {
    /// The tenant's limits, as they were within the last seconds.
    pub async fn limits_of(&self, tenant: &str) -> Result<Arc<TenantLimits>, store::Error> {
        let now = self.clock.elapsed();
        if let Some((at, limits)) = lock(&self.tenant_limits.0).get(tenant)
            && now.saturating_sub(*at) < KEEP
        {
            return Ok(limits.clone());
        }
        let limits = Arc::new(self.read_limits(tenant).await?);
        let mut kept = lock(&self.tenant_limits.0);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(tenant.to_owned(), (now, limits.clone()));
        Ok(limits)
    }

    /// The tenant's limits as they are now.
    pub async fn read_limits(&self, tenant: &str) -> Result<TenantLimits, store::Error> {
        let row = store::tenant::limits(&self.store, tenant).await?.unwrap_or_default();
        let corrupt = |e: serde_json::Error| store::Error::Corrupt(format!("the egress limit of a tenant: {e}"));
        Ok(TenantLimits {
            memory_bytes: row.max_memory_bytes.map(i64::unsigned_abs),
            attempt: row.max_attempt_ms.map(|most| ms(most.unsigned_abs())),
            sends_per_second: row.max_sends_per_s,
            cpu_ms: row.max_cpu_ms.map(i64::unsigned_abs),
            host_calls: row.max_host_calls.map(i64::unsigned_abs),
            host_calls_per_s: row.max_host_calls_per_s.map(i64::unsigned_abs),
            log_bytes: row.max_log_bytes.map(i64::unsigned_abs),
            output_bytes: row.max_output_bytes.map(i64::unsigned_abs),
            open_sends: row.max_open_sends.map(i64::unsigned_abs),
            egress: row.egress.as_deref().map(serde_json::from_str).transpose().map_err(corrupt)?,
        })
    }

    /// They were changed here: this node reads them again.
    pub fn forget_limits(&self, tenant: &str) {
        lock(&self.tenant_limits.0).remove(tenant);
    }
}
