//! One attempt: instantiate, call, end. Bounded in time from the first instruction of instantiation on.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wasmtime::{Store, UpdateDeadline};

use super::bounds::Bounds;
use super::engine::{Engine, Module};
use super::guest::{Guest, RunInfo, Setting};
use super::outcome::{self, Outcome};
use super::stdio::Captured;
use crate::config::ms;
use crate::gateway::Attempt;

/// How long a guest that computes rests at every epoch where it shares its thread with everything else.
const BREATH: Duration = Duration::from_millis(1);

/// Handles for each resource: a guest that lends one to a call has it and its loan.
const HANDLES: usize = 4;

/// What one attempt is to run.
pub struct Execution {
    pub attempt: Arc<Attempt>,
    pub info: RunInfo,
    /// The activity's name inside the module.
    pub export: String,
    /// A JSON text.
    pub input: String,
    pub bounds: Bounds,
    pub deadline: Instant,
    /// The time-out that the deadline stands for.
    pub timeout: &'static str,
    /// None: fresh random numbers.
    pub random_seed: Option<[u8; 32]>,
}

impl std::fmt::Debug for Execution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Execution").field("export", &self.export).finish_non_exhaustive()
    }
}

/// How it went.
#[derive(Debug)]
pub struct Ended {
    pub outcome: Outcome,
    pub stdout: Captured,
    pub stderr: Captured,
    pub used: Used,
}

/// What an attempt has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// The guest's computing, and the host's in its calls.
    pub cpu: Duration,
    /// Calls to the host.
    pub host_calls: u64,
    /// All linear memories together, at most.
    pub peak_memory_bytes: u64,
}

/// Runs one attempt to its end, on the guests' threads. All its sends are settled or marked unknown when this returns.
pub async fn execute(engine: &Arc<Engine>, module: &Arc<Module>, execution: Execution) -> Ended {
    let tenant = execution.attempt.tenant().to_owned();
    let (on, module) = (engine.clone(), module.clone());
    let ended = engine.threads.run(&tenant, async move { run(&on, &module, execution).await }).await;
    ended.unwrap_or_else(|| Ended {
        outcome: Outcome::Stopped,
        stdout: Captured::default(),
        stderr: Captured::default(),
        used: Used::default(),
    })
}

async fn run(engine: &Engine, module: &Module, execution: Execution) -> Ended {
    let Execution { attempt, info, export, input, bounds, deadline, timeout, random_seed } = execution;
    let run = Some((attempt.clone(), info));
    let mut store = new_store(engine, Setting { bounds, deadline, random_seed, run });
    let stops = store.data().stops();
    let cpu = store.data().meter.cpu.clone();
    let result = {
        let call = std::pin::pin!(async {
            let instance = module.pre.instantiate_async(&mut store).await?;
            instance.deedbox_activity_activities().call_run(&mut store, &export, &input).await
        });
        let mut call = cpu.measured(call);
        tokio::select! {
            biased;
            stop = stops.come() => Err(outcome::stopped(stop)),
            result = &mut call => Ok(result),
            () = tokio::time::sleep_until(deadline) => Err(timed_out(timeout)),
            () = attempt.stopped() => {
                let by_itself = tokio::time::timeout(ms(engine.config.stop_ms), call).await;
                by_itself.map_err(|_| Outcome::Stopped)
            }
        }
    };
    // Closing stops the attempt as well, so this is asked before.
    let stopped = attempt.is_stopping();
    let guest = store.data();
    let (stdout, stderr) = (guest.stdout.take(), guest.stderr.take());
    let outcome = match result {
        Err(outcome) => outcome,
        Ok(Ok(returned)) => outcome::returned(returned, bounds.output_bytes, engine.config.max_output_depth),
        Ok(Err(error)) => outcome::ended(error, guest.limiter.denied, &stderr.text()),
    };
    let outcome = match outcome {
        // What a guest makes of being stopped is no failure of its own: that spends no attempt.
        Outcome::Failed(_) | Outcome::Ended { .. } if stopped => Outcome::Stopped,
        outcome => outcome,
    };
    if goes_on(&outcome, &attempt) {
        attempt.let_sends_end(deadline).await;
    }
    attempt.close().await;
    let guest = store.data();
    let used = Used { cpu: cpu.used(), host_calls: guest.meter.calls(), peak_memory_bytes: guest.limiter.peak as u64 };
    Ended { outcome, stdout, stderr, used }
}

/// True when the run only rests: what other calls of the attempt have under way must not become an open question by that.
fn goes_on(outcome: &Outcome, attempt: &Attempt) -> bool {
    match outcome {
        Outcome::Suspended(_) | Outcome::AwaitsSignal { .. } | Outcome::Deferred(_) => true,
        Outcome::Stopped => attempt.is_paused(),
        _ => false,
    }
}

fn timed_out(timeout: &str) -> Outcome {
    Outcome::Ended { code: "timed-out", message: format!("the attempt did not end within {timeout}") }
}

/// A store whose guest gives way to others at every epoch and ends at its deadline.
pub fn new_store(engine: &Engine, setting: Setting) -> Store<Guest> {
    let mut store = Store::new(&engine.wasmtime, Guest::new(&engine.config, setting));
    store.limiter(|guest| &mut guest.limiter);
    store.set_hostcall_fuel(engine.config.max_call_bytes);
    store.set_max_component_handles(engine.config.max_resources.saturating_mul(HANDLES));
    store.set_epoch_deadline(1);
    let own_threads = engine.config.guest_threads > 0;
    store.epoch_deadline_callback(move |mut context| {
        let guest = context.data_mut();
        let now = Instant::now();
        if now >= guest.deadline {
            return Ok(UpdateDeadline::Interrupt);
        }
        let rest = guest.meter.look(now)?;
        Ok(match own_threads {
            true if rest.is_zero() => UpdateDeadline::Yield(1),
            true => UpdateDeadline::YieldCustom(1, Box::pin(tokio::time::sleep(rest))),
            // A bare yield would keep the thread busy: sockets and timers of the whole process would wait for a pause.
            false => UpdateDeadline::YieldCustom(1, Box::pin(tokio::time::sleep(rest.max(BREATH)))),
        })
    });
    store
}
