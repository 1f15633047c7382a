//! One attempt of one leased run, from its lease to its record.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument;

use super::finish::{self, Around};
use super::versions::Version;
use super::{Held, Worker};
use crate::config::ms;
use crate::gateway::{self, Lease, TenantLimits};
use crate::host::{self, Bounds, Captured, Ended, Execution, Module, Outcome, RunInfo, Used};
use crate::key;
use crate::policy::{Policy, Randomness};
use crate::probe::Point;
use crate::registry;
use crate::store::lease::{Finish, Leased, Next};
use crate::store::{self, log::Log};

/// How long after the lease's end a draining worker still tries to give a run back.
const GIVE_BACK_FOR: Duration = Duration::from_secs(60);

/// The first pause before a record is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// What an attempt needs before it begins.
struct Ready {
    version: Arc<Version>,
    module: Arc<Module>,
    limits: Arc<TenantLimits>,
}

impl Worker {
    /// Runs the attempt and records its end. Gives up silently when the lease is over: whoever took over records more.
    pub(super) async fn attempt(&self, Held { leased, deadline, close_at }: Held) {
        let span = tracing::info_span!("attempt", tenant.id = leased.tenant, run.id = %leased.run_id, attempt = leased.attempt);
        self.attempt_in_span(leased, deadline, close_at).instrument(span).await;
    }

    async fn attempt_in_span(&self, leased: Leased, deadline: Duration, close_at: Option<Instant>) {
        let record = store::lease::Lease { tenant: leased.tenant.clone(), run_id: leased.run_id, token: leased.token };
        let lease = Lease::new(record, deadline);
        let _held = self.leases.hold(lease.clone());
        let (ended, provider_wait) = match self.prepare(&leased).await {
            Ok(ready) => self.execute(&leased, &lease, &ready, close_at).await,
            Err(error) => (unprepared(error), None),
        };
        let probe = &self.gateway.probe();
        probe.reach(Point::AfterReturn).await;
        self.keep_logs(&leased, &ended).await;
        probe.reach(Point::BeforeFinish).await;
        let around = Around {
            max_retry_after: ms(self.config.max_retry_after_ms),
            provider_wait,
            close_left: close_at.map(|at| at.saturating_duration_since(Instant::now())),
            ending: lease.ending(),
        };
        self.record(&lease, finish::finish(&leased, ended, &around, rand::random())).await;
    }

    async fn prepare(&self, leased: &Leased) -> Result<Ready, registry::Error> {
        let version = self.versions.get(&self.store, leased).await?;
        let module = self.registry.load(&leased.tenant, version.digest).await?;
        let limits = self.gateway.limits_of(&leased.tenant).await?;
        Ok(Ready { version, module, limits })
    }

    /// Also tells how long a provider wants to be left alone.
    async fn execute(
        &self,
        leased: &Leased,
        lease: &Arc<Lease>,
        ready: &Ready,
        close_at: Option<Instant>,
    ) -> (Ended, Option<Duration>) {
        let Ready { version, module, limits } = ready;
        let policy = &version.policy;
        let started = Instant::now();
        let attempt = gateway::Attempt::new(
            self.gateway.clone(),
            lease.clone(),
            leased.activity.clone(),
            leased.attempt,
            policy.clone(),
            limits,
        );
        let engine = self.registry.engine();
        let seed = || key::random_seed(&self.random_secret, &leased.tenant, leased.run_id);
        let (deadline, timeout) = end_of(started, policy, limits, close_at);
        let execution = Execution {
            attempt: attempt.clone(),
            info: RunInfo {
                activity: leased.activity.clone(),
                attempt: leased.attempt.unsigned_abs(),
                max_attempts: leased.max_attempts.unsigned_abs(),
            },
            export: version.export.clone(),
            input: leased.input.clone(),
            bounds: Bounds::new(engine.config(), &policy.limits, limits),
            deadline,
            timeout,
            random_seed: (policy.randomness == Randomness::Stable).then(seed),
        };
        (host::execute(engine, module, execution).await, attempt.retry_after())
    }

    async fn keep_logs(&self, leased: &Leased, ended: &Ended) {
        for (stream, captured) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
            if captured.bytes.is_empty() {
                continue;
            }
            let log = Log {
                attempt: leased.attempt,
                stream: stream.to_owned(),
                text: captured.text(),
                truncated: captured.truncated,
            };
            let kept = store::log::append(&self.store, &leased.tenant, leased.run_id, leased.token, &log).await;
            if let Err(error) = kept {
                tracing::warn!(error = %error, "a log is lost");
            }
        }
    }

    /// Tries again while the database fails, for as long as the lease could still hold.
    /// When the database was away for longer than that, the run is given back instead: its next attempt replays what was done,
    /// and comes to the same end.
    async fn record(&self, lease: &Lease, mut finish: Finish) {
        let mut pause = RETRY_PAUSE;
        loop {
            match store::lease::finish(&self.store, finish.clone()).await {
                Ok(true) => return tracing::debug!(outcome = finish.outcome, "attempt ended"),
                Ok(false) => return tracing::info!("the lease was over before the attempt could be recorded"),
                Err(error) if !error.is_transient() || self.gives_up(lease) => {
                    return tracing::error!(error = %error, "the attempt could not be recorded");
                }
                Err(error) if self.is_over(lease, Duration::ZERO) && !finish.next.only_gives_back() => {
                    tracing::warn!(error = %error, "the attempt could not be recorded in time; its run is given back");
                    finish.outcome = "interrupted".to_owned();
                    finish.next = Next::Requeue { after_ms: 0 };
                }
                Err(error) => tracing::warn!(error = %error, "the attempt could not be recorded yet"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}

impl Worker {
    fn is_over(&self, lease: &Lease, longer: Duration) -> bool {
        self.gateway.clock().elapsed() >= lease.deadline() + longer
    }

    /// A worker that goes on tries for as long as the database is away; one that drains has to end.
    fn gives_up(&self, lease: &Lease) -> bool {
        self.leases.is_ending() && self.is_over(lease, GIVE_BACK_FOR)
    }
}

/// The end of an attempt, and the time-out that it stands for: the first of those that there are.
fn end_of(
    started: Instant,
    policy: &Policy,
    limits: &TenantLimits,
    close_at: Option<Instant>,
) -> (Instant, &'static str) {
    let own = (started + policy.timeouts.start_to_close.0, "start_to_close");
    let tenants =
        limits.attempt.and_then(|most| started.checked_add(most)).map(|at| (at, "the tenant's max_attempt_ms"));
    let whole = close_at.map(|at| (at, "schedule_to_close"));
    [tenants, whole].into_iter().flatten().fold(own, |first, other| if other.0 < first.0 { other } else { first })
}

/// A module that cannot be made ready is the host's fault or the database's, not the guest's.
fn unprepared(error: registry::Error) -> Ended {
    let outcome = match error {
        registry::Error::Store(error) => Outcome::of_store(&error),
        other => Outcome::Ended { code: "module-unavailable", message: other.to_string() },
    };
    Ended { outcome, stdout: Captured::default(), stderr: Captured::default(), used: Used::default() }
}
