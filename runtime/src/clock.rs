//! Time as Rust code sees it. Leases and retry times are judged by the database's clock; this one only decides when a
//! process must stop trusting a lease.

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

/// A clock that never goes back and counts the time that the machine was suspended.
pub trait Clock: Debug + Send + Sync {
    /// Time since an arbitrary start.
    fn elapsed(&self) -> Duration;

    /// The time of day, for what leaves the machine signed or stamped with it. Nothing is decided by it.
    fn now(&self) -> SystemTime;
}

/// The machine's own clock: `CLOCK_BOOTTIME` on Linux; elsewhere the monotonic clock, which on macOS counts suspended
/// time as well.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn elapsed(&self) -> Duration {
        #[cfg(target_os = "linux")]
        let id = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let id = rustix::time::ClockId::Monotonic;
        let now = rustix::time::clock_gettime(id);
        // Neither field of a clock that counts from the start of the machine is negative.
        Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
    }
    #[allow(clippy::disallowed_methods, reason = "the one place that asks the system")]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}
