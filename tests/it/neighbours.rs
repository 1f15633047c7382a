//! A bad neighbour: one tenant does the worst of each kind, without end, while another goes on with small runs of one effect
//! each. Whatever the first does, the second's runs stay quick, and none of them fails.
//!
//! One real node, in a process of its own, is everything at once: API, worker and guests. Quiet and noisy phases follow each
//! other, so that whatever else the machine does meets both.

mod noise;
mod stage;
mod stream;

use std::time::Duration;

use tokio::sync::Mutex;

use crate::harness::{long, skipped, tell};
use noise::Noise;
use stage::Stage;

/// One kind at a time: another's noise would be in the quiet phase.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Rounds of a quiet and a noisy phase that are judged together, at least and at most. More than the least are needed where
/// other tests have the machine just then.
const ROUNDS: std::ops::RangeInclusive<usize> = 3..=7;

/// What a noisy phase may add to twice the quiet figure: the processors are two, and the system hands them on every few
/// milliseconds, to the database as well.
const ALLOWANCE: Duration = Duration::from_millis(60);

/// The slowest run of a phase, the median of the rounds: without the noise and beside it.
struct Figures {
    quiet: Vec<Duration>,
    noisy: Vec<Duration>,
}

impl Figures {
    fn fit(&self) -> bool {
        median(&self.noisy) <= 2 * median(&self.quiet) + ALLOWANCE
    }
}

/// Measures rounds until the figures are as they must be, or there were enough of them.
async fn measured(settings: &str, noise: Noise) -> Figures {
    let _alone = ALONE.lock().await;
    let stage = Stage::set_up(settings, noise).await;
    let mut figures = Figures { quiet: Vec::new(), noisy: Vec::new() };
    for round in 1..=*ROUNDS.end() {
        figures.quiet.push(stream::slowest(&stage).await);
        let din = noise::begin(&stage, noise).await;
        figures.noisy.push(stream::slowest(&stage).await);
        din.end(&stage).await;
        if round >= *ROUNDS.start() && figures.fit() {
            break;
        }
    }
    stage.end().await;
    let Figures { quiet, noisy } = &figures;
    let rounds = quiet.len();
    tell(&format!("neighbours: {noise:?}: {:?} quiet, {:?} beside it, {rounds} rounds", median(quiet), median(noisy)));
    figures
}

async fn holds(noise: Noise) {
    let figures = measured(stage::SETTINGS, noise).await;
    assert!(figures.fit(), "{noise:?}: beside it {:?}, without {:?}", figures.noisy, figures.quiet);
}

fn median(all: &[Duration]) -> Duration {
    let mut sorted = all.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

macro_rules! neighbours {
    ($($(#[$doc:meta])* $name:ident => $noise:ident),* $(,)?) => {
        $($(#[$doc])* #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            holds(Noise::$noise).await;
        })*
    };
}

neighbours! {
    /// F-F01.
    guests_that_never_end_do_not_slow_a_neighbour => Spin,
    /// F-F06.
    guests_that_take_all_memory_do_not_slow_a_neighbour => Memory,
    /// F-F10.
    guests_that_overflow_their_stack_do_not_slow_a_neighbour => Stack,
    /// F-F08.
    guests_that_grow_tables_do_not_slow_a_neighbour => Tables,
    /// F-F11.
    guests_that_print_without_end_do_not_slow_a_neighbour => Logs,
    /// F-E22.
    guests_that_call_the_host_without_end_do_not_slow_a_neighbour => HostCalls,
    /// F-E22.
    guests_with_thousands_of_effects_do_not_slow_a_neighbour => Effects,
    /// F-E22.
    guests_with_many_requests_at_once_do_not_slow_a_neighbour => Together,
    /// F-E19.
    providers_that_never_answer_do_not_slow_a_neighbour => Silence,
    clients_that_read_a_byte_a_second_do_not_slow_a_neighbour => SlowReads,
    event_streams_that_nobody_reads_do_not_slow_a_neighbour => Streams,
    /// F-K05.
    ten_thousand_starts_do_not_slow_a_neighbour => Starts,
    /// F-F15.
    uploads_that_take_long_to_compile_do_not_slow_a_neighbour => Uploads,
}

/// The check sees what it is for: on the threads of everything else, guests that never end slow a neighbour down.
#[tokio::test(flavor = "multi_thread")]
async fn guests_on_the_threads_of_everything_else_would_fail_the_check() {
    if !long() {
        return skipped("neighbours on a node without threads of the guests' own");
    }
    assert!(!measured(stage::SHARED_THREADS, Noise::Spin).await.fit());
}
