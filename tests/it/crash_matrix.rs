//! The crash matrix: a worker is stopped at each point of an attempt, and another goes on. F-B01, F-B02, F-C01.
//!
//! Rows: eight points. Columns: the same worker starts again, another takes over, the lease ends while the first still
//! runs and wakes when all is done. Each with a provider that takes keys and with one that does not.

use deedbox::config::Config;

use crate::harness::cell::{At, Cell, Kind, PATIENCE, Then, effect, everything_written, unchanged, work_until_settled};
use crate::harness::freeze::Victim;
use crate::harness::{World, config};

macro_rules! points {
    ($kind:ident, $then:ident: $($name:ident = $at:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                survive(Cell { at: At::$at, then: Then::$then, kind: Kind::$kind }).await;
            }
        )*
    };
    ($kind:ident, $then:ident) => {
        use super::super::*;

        points! { $kind, $then:
            stopped_before_the_claim = BeforeClaim
            stopped_after_the_claim = AfterClaim
            stopped_after_the_send = AfterSend
            stopped_after_the_provider_applied = AfterApply
            stopped_after_the_response = AfterResponse
            stopped_after_the_settlement = AfterSettle
            stopped_after_the_guest_returned = AfterReturn
            stopped_before_the_finish = BeforeFinish
        }
    };
}

/// One application, always.
mod keyed {
    mod the_same_worker_restarts {
        points! { Keyed, SameWorkerRestarts }
    }

    mod another_worker_takes_over {
        points! { Keyed, AnotherTakesOver }
    }

    mod the_first_worker_wakes_late {
        points! { Keyed, FirstWakesLate }
    }
}

/// Never two applications; where nobody can know, the run waits and nothing is sent.
mod keyless {
    mod the_same_worker_restarts {
        points! { Keyless, SameWorkerRestarts }
    }

    mod another_worker_takes_over {
        points! { Keyless, AnotherTakesOver }
    }

    mod the_first_worker_wakes_late {
        points! { Keyless, FirstWakesLate }
    }
}

/// F-C01: the first wakes while the second holds a living lease, so that nothing but the token and the holder tell them
/// apart.
mod the_first_worker_wakes_while_another_is_at_work {
    use super::*;

    macro_rules! pairs {
        ($($name:ident = $first:ident $second:ident)*) => {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    overlap(At::$first, At::$second).await;
                }
            )*
        };
    }

    pairs! {
        both_before_the_claim = BeforeClaim BeforeClaim
        before_the_claim_and_after_it = BeforeClaim AfterClaim
        both_after_the_claim = AfterClaim AfterClaim
        after_the_claim_and_after_the_response = AfterClaim AfterResponse
        after_the_response_and_before_the_finish = AfterResponse BeforeFinish
        after_the_settlement_and_before_the_claim = AfterSettle BeforeClaim
        after_the_settlement_and_before_the_finish = AfterSettle BeforeFinish
        both_after_the_guest_returned = AfterReturn AfterReturn
        both_before_the_finish = BeforeFinish BeforeFinish
    }
}

async fn overlap(first_at: At, second_at: At) {
    let cell = Cell { at: first_at, then: Then::FirstWakesLate, kind: Kind::Keyed };
    let (world, run) = cell.set_up(patient()).await;
    let first = Victim::start(&world, "one", patient(), first_at.point());
    first.held().await;
    first.freeze().await;
    world.expire_leases().await;
    let second = Victim::start(&world, "two", patient(), second_at.point());
    second.held().await;
    let (written, arrivals) = (everything_written(&world).await, world.books.arrivals().await.unwrap());
    first.wake().await;
    unchanged(&written, &everything_written(&world).await);
    assert_eq!(world.books.arrivals().await.unwrap(), arrivals, "it sent something");
    second.resume().await;
    cell.check(&world, run, true).await;
    assert_eq!(world.outcomes(run).await, ["worker-lost", "completed"]);
}

/// F-C01: its success is news to a second worker that has taken the effect, and is about to send it once more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_success_that_is_proved_late_settles_an_effect_that_another_holds() {
    let cell = Cell { at: At::AfterResponse, then: Then::FirstWakesLate, kind: Kind::Keyed };
    let (world, run) = cell.set_up(patient()).await;
    let first = Victim::start(&world, "one", patient(), cell.at.point());
    first.held().await;
    first.freeze().await;
    world.expire_leases().await;
    let second = Victim::start(&world, "two", patient(), At::AfterClaim.point());
    second.held().await;
    first.wake().await;
    let effect = effect(&world, run).await;
    assert_eq!((effect.state.as_str(), effect.doubled), ("completed", false));
    second.resume().await;
    work_until_settled(&world, &world.node, run).await;
    assert_eq!(world.output(run).await[0]["status"], 201);
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}

async fn survive(cell: Cell) {
    let (world, run) = cell.set_up(patient()).await;
    let first = Victim::start(&world, "one", patient(), cell.at.point());
    match cell.at.point() {
        Some(_) => first.held().await,
        None => cell.held_by_provider(&world).await,
    }
    if cell.then == Then::FirstWakesLate {
        first.freeze().await;
        world.expire_leases().await;
        return outlive(cell, &world, run, first).await;
    }
    first.kill().await;
    world.expire_leases().await;
    let second = crate::harness::node(&world.database, cell.second_name(), patient(), deedbox::probe::none()).await;
    work_until_settled(&world, &second, run).await;
    cell.check(&world, run, true).await;
}

/// The first worker sleeps while the second does all there is to do; then it wakes.
async fn outlive(cell: Cell, world: &World, run: uuid::Uuid, first: Victim) {
    let second = crate::harness::node(&world.database, cell.second_name(), patient(), deedbox::probe::none()).await;
    assert!(second.worker().run_once().await.unwrap());
    world.books.release().await.unwrap();
    if matches!(cell.at, At::AfterSend | At::AfterApply) {
        world.books.wait_for_applied(1, PATIENCE).await.unwrap();
    }
    work_until_settled(world, &second, run).await;
    cell.check(world, run, false).await;
    let (written, arrivals) = (everything_written(world).await, world.books.arrivals().await.unwrap());

    first.wake().await;
    assert_eq!(world.books.arrivals().await.unwrap(), arrivals, "it sent something");
    if cell.kind == Kind::Keyless && cell.is_proved_late() {
        assert!(world.run(run).await.due_at.is_some(), "the run goes on by itself");
        work_until_settled(world, &second, run).await;
    } else {
        unchanged(&written, &everything_written(world).await);
    }
    cell.check(world, run, true).await;
}

/// No lease, renewal or time-out is due by itself while a test runs.
fn patient() -> Config {
    let mut config = config();
    config.worker.lease_ms = 300_000;
    config.gateway.default_send_ms = 300_000;
    config.gateway.max_send_ms = 300_000;
    config
}
