//! The clocks that guests see: the real time, in coarse steps. A fine clock is what a guest needs to measure how long its
//! own memory or code takes, and by that what a neighbour on the same processor does; what activities want of a clock,
//! a millisecond tells as well. It must never be used to decide anything: that is for the database's clock.

use std::time::Duration;

use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::clocks::{HostMonotonicClock, HostWallClock, MonotonicClock, WallClock};

/// A clock whose readings are rounded down to multiples of a step.
struct Coarse<C> {
    clock: C,
    step: Duration,
}

/// Gives a guest clocks with this resolution. The monotonic one begins with the instance, so that it does not tell for how
/// long the machine or the process has been up.
pub fn coarsen(wasi: &mut WasiCtxBuilder, resolution_us: u64) {
    let step = Duration::from_micros(resolution_us.max(1));
    wasi.wall_clock(Coarse { clock: WallClock::new(), step });
    wasi.monotonic_clock(Coarse { clock: MonotonicClock::new(), step });
}

impl<C> Coarse<C> {
    fn rounded(&self, reading: Duration) -> Duration {
        let steps = reading.as_nanos() / self.step.as_nanos();
        // No clock reads further than this: five centuries of nanoseconds.
        Duration::from_nanos(u64::try_from(steps * self.step.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl HostWallClock for Coarse<WallClock> {
    fn resolution(&self) -> Duration {
        self.step
    }

    fn now(&self) -> Duration {
        self.rounded(self.clock.now())
    }
}

impl HostMonotonicClock for Coarse<MonotonicClock> {
    fn resolution(&self) -> u64 {
        u64::try_from(self.step.as_nanos()).unwrap_or(u64::MAX)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.rounded(Duration::from_nanos(self.clock.now())).as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_rounded_down_to_whole_steps() {
        let clock = Coarse { clock: (), step: Duration::from_millis(3) };
        for (nanos, steps) in
            [(0, 0), (2_999_999, 0), (3_000_000, 1), (8_999_999, 2), (1_764_470_000_000_000_001, 588_156_666_666)]
        {
            assert_eq!(clock.rounded(Duration::from_nanos(nanos)), Duration::from_millis(3 * steps), "{nanos}");
        }
    }
}
