//! One cell of the crash matrix: where the first worker was stopped, what happened then, and what kind of provider it
//! was talking to; and what must be true afterwards. The provider's books are the measure, the ledger must agree.

use std::time::{Duration, Instant};

use deedbox::config::Config;
use deedbox::node::Node;
use deedbox::probe::Point;
use deedbox::store::{self, ledger};
use deedbox_books::{Behaviour, Options};
use serde_json::{Value, json};
use uuid::Uuid;

use super::World;
use super::world::TENANT;

pub const PATIENCE: Duration = Duration::from_secs(30);

/// Where the first worker stops, in the order of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    BeforeClaim,
    AfterClaim,
    AfterSend,
    AfterApply,
    AfterResponse,
    AfterSettle,
    AfterReturn,
    BeforeFinish,
}

impl At {
    pub const ALL: [Self; 8] = [
        Self::BeforeClaim,
        Self::AfterClaim,
        Self::AfterSend,
        Self::AfterApply,
        Self::AfterResponse,
        Self::AfterSettle,
        Self::AfterReturn,
        Self::BeforeFinish,
    ];

    /// The probe's point; none where the provider holds the request.
    pub fn point(self) -> Option<Point> {
        match self {
            Self::BeforeClaim => Some(Point::BeforeClaim),
            Self::AfterClaim => Some(Point::AfterClaim),
            Self::AfterSend | Self::AfterApply => None,
            Self::AfterResponse => Some(Point::AfterResponse),
            Self::AfterSettle => Some(Point::AfterSettle),
            Self::AfterReturn => Some(Point::AfterReturn),
            Self::BeforeFinish => Some(Point::BeforeFinish),
        }
    }

    /// The ledger cannot know what became of a send that was stopped here.
    fn leaves_unknown(self) -> bool {
        (Self::AfterClaim..=Self::AfterResponse).contains(&self)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    SameWorkerRestarts,
    AnotherTakesOver,
    FirstWakesLate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Keyed,
    Keyless,
}

#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub at: At,
    pub then: Then,
    pub kind: Kind,
}

impl Cell {
    /// A provider that will hold the first request where the cell says so, and one run of one charge, due now.
    pub async fn set_up(self, config: Config) -> (World, Uuid) {
        let keyless = self.kind == Kind::Keyless;
        let world = World::with(Options { keyless, convention: None }, config).await;
        world.database.execute(KEEP_HISTORY).await;
        match self.at {
            At::AfterSend => world.script(&[Behaviour::HoldBeforeApply]).await,
            At::AfterApply => world.script(&[Behaviour::HoldAfterApply]).await,
            _ => {}
        }
        let retry = json!({ "max_attempts": 500, "initial_interval": "20ms", "backoff_coefficient": 1.0 });
        let profile = if keyless { "keyless" } else { "stripe" };
        world.deploy("send", profile, json!({ "retry": retry })).await;
        let call = json!({ "method": "POST", "url": world.charges(), "json": { "amount": 4200 } });
        let run = world.start("send", json!({ "calls": [call], "fail_on_error": true })).await;
        (world, run)
    }

    /// Waits until the provider holds the first request.
    pub async fn held_by_provider(self, world: &World) {
        world.books.wait_for_arrivals(1, PATIENCE).await.unwrap();
        if self.at == At::AfterApply {
            world.books.wait_for_applied(1, PATIENCE).await.unwrap();
        }
    }

    /// The worker that goes on with the run.
    pub fn second_name(self) -> &'static str {
        if self.then == Then::SameWorkerRestarts { "one" } else { "two" }
    }

    /// The first send's success becomes known after the run has gone on without it.
    pub fn is_proved_late(self) -> bool {
        self.then == Then::FirstWakesLate && (At::AfterSend..=At::AfterResponse).contains(&self.at)
    }

    fn applied(self) -> usize {
        match (self.kind, self.at) {
            (Kind::Keyed, _) => 1,
            (Kind::Keyless, At::AfterClaim) => 0,
            // A provider whose client is gone before it began does not begin.
            (Kind::Keyless, At::AfterSend) => usize::from(self.then == Then::FirstWakesLate),
            (Kind::Keyless, _) => 1,
        }
    }

    /// Before the first worker wakes, if it does.
    fn is_open(self, awake: bool) -> bool {
        self.kind == Kind::Keyless && self.at.leaves_unknown() && !(awake && self.is_proved_late())
    }

    /// Everything that must be true once nothing is due. `awake`: the first worker has woken, or never will.
    pub async fn check(self, world: &World, run: Uuid, awake: bool) {
        self.check_books(world).await;
        let sends = self.check_ledger(world, run, awake).await;
        self.check_arrivals(world, sends).await;
        self.check_run(world, run, awake).await;
        self.check_attempts(world, run, awake).await;
    }

    async fn check_books(self, world: &World) {
        let applied = world.books.applied().await.unwrap();
        assert_eq!(applied.len(), self.applied(), "{self:?}: {applied:?}");
    }

    /// The number of sends.
    async fn check_ledger(self, world: &World, run: Uuid, awake: bool) -> usize {
        let effect = effect(world, run).await;
        let open = self.is_open(awake);
        assert_eq!(effect.state, if open { "escaped" } else { "completed" });
        assert_eq!((effect.doubled, effect.status), (false, (!open).then_some(201)));
        let history: Vec<String> = sqlx::query_scalar("select state from effect_history order by step")
            .fetch_all(&mut world.database.connect().await)
            .await
            .unwrap();
        assert_eq!(history, self.history(awake));
        let sends = world.sends(run).await;
        let results: Vec<_> = sends.iter().map(|send| send.result.as_deref().unwrap_or("-")).collect();
        self.check_results(&results, awake);
        sends.len()
    }

    fn history(self, awake: bool) -> &'static [&'static str] {
        match self.kind {
            Kind::Keyless if self.is_open(awake) => &["claimed", "escaped"],
            Kind::Keyless if self.at.leaves_unknown() => &["claimed", "escaped", "completed"],
            _ => &["claimed", "completed"],
        }
    }

    /// The first send's result, and that of the sends that followed.
    fn check_results(self, results: &[&str], awake: bool) {
        let first = match self.at {
            _ if !self.at.leaves_unknown() => "answered",
            _ if !awake || self.then != Then::FirstWakesLate => "unknown",
            // Woken before its first byte: it was late by the clock and left nothing on the wire.
            At::AfterClaim => "not-applied",
            _ => "answered",
        };
        assert_eq!(results[0], first, "{results:?}");
        if self.kind == Kind::Keyless || !self.at.leaves_unknown() {
            return assert_eq!(results.len(), 1, "{results:?}");
        }
        let (last, between) = results[1..].split_last().unwrap();
        assert_eq!(*last, "answered", "{results:?}");
        assert!(between.iter().all(|result| *result == "in-flight"), "{results:?}");
        let held = matches!(self.at, At::AfterSend | At::AfterApply);
        assert!(held || between.is_empty(), "{results:?}");
    }

    /// Each send arrived, except one that was stopped between claim and wire; all under one key.
    async fn check_arrivals(self, world: &World, sends: usize) {
        let arrivals = world.books.arrivals().await.unwrap();
        assert_eq!(arrivals.len(), sends - usize::from(self.at == At::AfterClaim), "{arrivals:?}");
        let entry = &ledger::list(world.node.store(), TENANT, &everything()).await.unwrap()[0];
        assert_eq!(entry.wire_key.is_some(), self.kind == Kind::Keyed);
        assert!(arrivals.iter().all(|arrival| arrival.key == entry.wire_key), "{arrivals:?}");
    }

    async fn check_run(self, world: &World, run: Uuid, awake: bool) {
        let effect = effect(world, run).await;
        if self.is_open(awake) {
            let run = world.run(run).await;
            assert_eq!((run.state.as_str(), run.due_at), ("waiting", None));
            return assert_eq!(run.waiting_effect, Some(effect.effect_id));
        }
        let output = world.output(run).await;
        let body: Value = serde_json::from_str(output[0]["body"].as_str().unwrap()).unwrap();
        assert_eq!(body, json!({ "id": "ch_1", "number": 1, "request": { "amount": 4200 } }));
        assert_eq!(output[0]["status"], 201);
        assert_eq!(output[0]["effect_id"], hex(&effect.effect_id));
        let sent_again = self.at == At::BeforeClaim || (self.kind == Kind::Keyed && self.at.leaves_unknown());
        assert_eq!(output[0]["source"], if sent_again { "sent" } else { "replayed" });
    }

    async fn check_attempts(self, world: &World, run: Uuid, awake: bool) {
        let attempts = world.attempts(run).await;
        let workers: Vec<_> = attempts.iter().map(|attempt| attempt.worker.as_str()).collect();
        assert_eq!(workers[0], "one");
        assert!(workers[1..].iter().all(|worker| *worker == self.second_name()), "{workers:?}");
        let outcomes = world.outcomes(run).await;
        if self.kind == Kind::Keyed {
            let (last, earlier) = outcomes[1..].split_last().unwrap();
            assert_eq!((outcomes[0].as_str(), last.as_str()), ("worker-lost", "completed"));
            // The provider was still at work on the first send.
            return assert!(earlier.iter().all(|outcome| outcome == "failed"), "{outcomes:?}");
        }
        let expected: &[&str] = match (self.at.leaves_unknown(), self.is_open(awake)) {
            (false, _) => &["worker-lost", "completed"],
            (true, true) => &["worker-lost", "suspended"],
            (true, false) => &["worker-lost", "suspended", "completed"],
        };
        assert_eq!(outcomes, expected);
    }
}

/// Works until the run has ended or waits for an answer, and nothing is due.
pub async fn work_until_settled(world: &World, node: &Node, run: Uuid) {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let worked = node.worker().run_once().await.unwrap();
        let run = world.run(run).await;
        if !worked && run.state != "running" && run.due_at.is_none() {
            return;
        }
        assert!(Instant::now() < give_up, "{run:?}");
        if !worked {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The run's one effect.
pub async fn effect(world: &World, run: Uuid) -> ledger::Entry {
    let mut effects = ledger::list_of_run(world.node.store(), TENANT, run, &everything()).await.unwrap();
    assert_eq!(effects.len(), 1, "{effects:?}");
    effects.remove(0)
}

pub fn everything() -> ledger::Filter {
    ledger::Filter { limit: 100, ..ledger::Filter::default() }
}

pub async fn logs(world: &World, run: Uuid) -> Vec<store::log::Log> {
    store::log::list(world.node.store(), TENANT, run, None, 1_000).await.unwrap()
}

/// All that a worker writes, as one text: runs, attempts, logs, checkpoints, and effects with their recorded answers.
pub async fn everything_written(world: &World) -> String {
    let sql = "select jsonb_pretty(jsonb_build_object(
                 'runs', (select jsonb_agg(to_jsonb(r) order by run_id) from runs r),
                 'attempts', (select jsonb_agg(to_jsonb(a) order by run_id, attempt) from attempts a),
                 'logs', (select jsonb_agg(to_jsonb(l) order by run_id, attempt, stream) from logs l),
                 'checkpoints', (select jsonb_agg(to_jsonb(c) order by run_id) from checkpoints c),
                 'effects', (select jsonb_agg(to_jsonb(e) order by effect_id) from effects e)))";
    sqlx::query_scalar(sql).fetch_one(&mut world.database.connect().await).await.unwrap()
}

/// Compares two such texts line by line.
pub fn unchanged(before: &str, after: &str) {
    let changed: Vec<_> = before.lines().zip(after.lines()).filter(|(before, after)| before != after).collect();
    assert!(changed.is_empty() && before.lines().count() == after.lines().count(), "{changed:#?}");
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes down every state that an effect goes through.
const KEEP_HISTORY: &str = "
    create table effect_history (step bigint generated always as identity, state text not null);
    create function keep_history() returns trigger language plpgsql as $$
    begin
      if tg_op = 'INSERT' or new.state <> old.state then
        insert into effect_history (state) values (new.state);
      end if;
      return null;
    end $$;
    create trigger keep_history after insert or update on effects for each row execute function keep_history()";
