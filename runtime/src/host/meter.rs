//! What an attempt has used of its CPU time and of its calls to the host, and when that is too much. It only counts and
//! judges: whoever runs the guest asks at every epoch, and acts.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

use super::bounds::Bounds;

/// A limit that a guest has reached: its attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    #[error(
        "the attempt has used its {0} ms of CPU time: let it compute less, or raise policy.limits.cpu_ms, up to the \
         tenant's max_cpu_ms and host.max_cpu_ms"
    )]
    Cpu(u128),
    #[error(
        "the attempt has made more than its {0} calls to the host: let it make fewer, or raise policy.limits.host_calls, \
         up to the tenant's max_host_calls and host.max_host_calls"
    )]
    HostCalls(u64),
}

impl Exceeded {
    pub const fn code(self) -> &'static str {
        match self {
            Self::Cpu(_) => "out-of-fuel",
            Self::HostCalls(_) => "out-of-calls",
        }
    }
}

/// CPU time of one attempt: what its guest computes, and what the host does in its calls on the same thread.
#[derive(Clone, Debug, Default)]
pub struct Cpu(Arc<Clocks>);

#[derive(Debug, Default)]
struct Clocks {
    /// Nanoseconds of all turns that are over.
    over: AtomicU64,
    /// The thread's clock at the begin of the turn under way.
    began: AtomicU64,
}

impl Cpu {
    /// The same future, measured. A turn of it is one poll, on one thread from its begin to its end.
    pub fn measured<F: Future>(&self, future: Pin<&mut F>) -> impl Future<Output = F::Output> + Unpin {
        Measured { future, clocks: self.0.clone() }
    }

    /// Of all turns that are over.
    pub fn used(&self) -> Duration {
        Duration::from_nanos(self.0.over.load(Ordering::Relaxed))
    }

    /// With the turn under way; to be asked from within it.
    fn used_now(&self) -> Duration {
        self.used() + Duration::from_nanos(self.0.turn())
    }
}

impl Clocks {
    fn turn(&self) -> u64 {
        thread_nanos().saturating_sub(self.began.load(Ordering::Relaxed))
    }
}

struct Measured<'a, F> {
    future: Pin<&'a mut F>,
    clocks: Arc<Clocks>,
}

impl<F: Future> Future for Measured<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.clocks.began.store(thread_nanos(), Ordering::Relaxed);
        let polled = self.future.as_mut().poll(cx);
        self.clocks.over.fetch_add(self.clocks.turn(), Ordering::Relaxed);
        polled
    }
}

/// How long this thread has been on a processor.
fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
        .as_nanos()
        .try_into()
        .unwrap_or(u64::MAX)
}

/// What one attempt has used, against what it may.
#[derive(Debug)]
pub struct Meter {
    pub cpu: Cpu,
    most_cpu: Duration,
    most_calls: u64,
    calls: u64,
    pace: Pace,
}

/// Calls in a second: a second's worth of credit at most, and debts that are rested off.
#[derive(Debug)]
struct Pace {
    per_s: f64,
    credit: f64,
    /// The calls that were counted up to the last look.
    seen: u64,
    looked_at: Instant,
}

impl Meter {
    pub fn new(bounds: &Bounds, now: Instant) -> Self {
        let per_s = bounds.host_calls_per_s.max(1) as f64;
        Self {
            cpu: Cpu::default(),
            most_cpu: bounds.cpu,
            most_calls: bounds.host_calls,
            calls: 0,
            pace: Pace { per_s, credit: per_s, seen: 0, looked_at: now },
        }
    }

    /// The guest calls the host.
    pub fn call(&mut self) {
        self.calls += 1;
    }

    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// How long the guest has to rest to keep to its pace; or the limit that it has reached. To be asked within a turn of it.
    pub fn look(&mut self, now: Instant) -> Result<Duration, Exceeded> {
        if self.cpu.used_now() >= self.most_cpu {
            return Err(Exceeded::Cpu(self.most_cpu.as_millis()));
        }
        if self.calls > self.most_calls {
            return Err(Exceeded::HostCalls(self.most_calls));
        }
        Ok(self.pace.look(self.calls, now))
    }
}

impl Pace {
    fn look(&mut self, calls: u64, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.looked_at).as_secs_f64();
        let made = calls.saturating_sub(self.seen) as f64;
        self.credit = (self.credit + passed * self.per_s).min(self.per_s) - made;
        (self.seen, self.looked_at) = (calls, now);
        Duration::try_from_secs_f64(-self.credit / self.per_s).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HostConfig, ms};

    fn meter(now: Instant) -> Meter {
        let bounds = Bounds { host_calls: 250, host_calls_per_s: 100, ..Bounds::defaults(&HostConfig::default()) };
        Meter::new(&bounds, now)
    }

    fn called(meter: &mut Meter, count: u64) {
        (0..count).for_each(|_| meter.call());
    }

    #[test]
    fn a_seconds_worth_of_calls_may_be_made_at_once_and_what_is_above_is_rested_off() {
        let began = Instant::now();
        let mut meter = meter(began);
        called(&mut meter, 100);
        assert_eq!(meter.look(began), Ok(Duration::ZERO));
        called(&mut meter, 50);
        assert_eq!(meter.look(began), Ok(ms(500)));
        assert_eq!(meter.look(began + ms(500)), Ok(Duration::ZERO));
        // However long it has been silent, a second's worth is the most.
        let later = began + ms(60_000);
        called(&mut meter, 100);
        assert_eq!(meter.look(later), Ok(Duration::ZERO));
        assert_eq!(meter.calls(), 250);
        meter.call();
        assert_eq!(meter.look(later), Err(Exceeded::HostCalls(250)));
    }

    /// Takes some CPU time in each of two turns, and rests between them.
    async fn working() {
        for _ in 0..2 {
            let began = thread_nanos();
            while thread_nanos() - began < 20_000_000 {
                std::hint::spin_loop();
            }
            tokio::time::sleep(ms(200)).await;
        }
    }

    #[tokio::test]
    async fn what_is_computed_counts_and_what_is_waited_does_not() {
        let cpu = Cpu::default();
        let future = std::pin::pin!(working());
        cpu.measured(future).await;
        assert!((ms(40)..ms(200)).contains(&cpu.used()), "{:?}", cpu.used());
    }

    #[tokio::test]
    async fn cpu_time_is_seen_to_end_within_a_turn() {
        let began = Instant::now();
        let bounds = Bounds { cpu: ms(10), ..Bounds::defaults(&HostConfig::default()) };
        let mut meter = Meter::new(&bounds, began);
        let cpu = meter.cpu.clone();
        let future = std::pin::pin!(async {
            assert_eq!(meter.look(began), Ok(Duration::ZERO));
            let before = thread_nanos();
            while thread_nanos() - before < 11_000_000 {
                std::hint::spin_loop();
            }
            meter.look(began)
        });
        assert_eq!(cpu.measured(future).await, Err(Exceeded::Cpu(10)));
    }
}
