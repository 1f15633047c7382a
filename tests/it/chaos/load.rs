//! Runs started over HTTP as callers do, against whichever server answers. What was confirmed is remembered, and what was
//! seen to have ended. A start without an answer, or one that was told to try again, may or may not have been made.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::fleet::Origins;
use super::stage::Calls;
use crate::harness::http::client;

const STARTERS: u64 = 3;
/// Between one start of a starter and the next.
const PAUSE: Duration = Duration::from_millis(100);
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);

/// All that callers know.
#[derive(Clone, Debug, Default)]
pub struct Starts {
    pub acknowledged: Vec<Uuid>,
    pub unacknowledged: usize,
    /// Runs that were seen to have ended, and how.
    pub told: HashMap<Uuid, String>,
    /// Answers that nobody may get because a database or a process is away.
    pub odd: Vec<String>,
}

pub struct Load {
    shared: Arc<Shared>,
    starters: JoinSet<Starts>,
}

struct Shared {
    origins: Origins,
    token: String,
    calls: Calls,
    http: reqwest::Client,
    stop: CancellationToken,
    number: AtomicUsize,
    acknowledged: AtomicUsize,
    refused: AtomicUsize,
}

impl Load {
    pub fn begin(origins: Origins, token: String, calls: Calls, seed: u64) -> Self {
        let shared = Arc::new(Shared {
            origins,
            token,
            calls,
            http: client(),
            stop: CancellationToken::new(),
            number: AtomicUsize::new(0),
            acknowledged: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        });
        let mut starters = JoinSet::new();
        for starter in 0..STARTERS {
            starters.spawn(start_until_stopped(shared.clone(), StdRng::seed_from_u64(seed ^ starter)));
        }
        Self { shared, starters }
    }

    /// Starts that were confirmed so far.
    pub fn acknowledged(&self) -> usize {
        self.shared.acknowledged.load(Ordering::SeqCst)
    }

    /// Starts that were answered with 503 so far.
    pub fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::SeqCst)
    }

    /// Waits until so many more starts are confirmed.
    pub async fn goes_on(&self, more: usize) {
        let wanted = self.acknowledged() + more;
        super::until("more starts are confirmed", async || self.acknowledged() >= wanted).await;
    }

    pub async fn end(mut self) -> Starts {
        self.shared.stop.cancel();
        let mut all = Starts::default();
        while let Some(one) = self.starters.join_next().await {
            let one = one.unwrap();
            all.acknowledged.extend(one.acknowledged);
            all.unacknowledged += one.unacknowledged;
            all.told.extend(one.told);
            all.odd.extend(one.odd);
        }
        all
    }
}

async fn start_until_stopped(shared: Arc<Shared>, mut dice: StdRng) -> Starts {
    let mut starts = Starts::default();
    while !shared.stop.is_cancelled() {
        tokio::time::sleep(PAUSE).await;
        let origins = shared.origins.all();
        if origins.is_empty() {
            continue;
        }
        let origin = &origins[dice.random_range(0..origins.len())];
        let started = shared.start(origin, &mut dice, &mut starts).await;
        if let Some(run) = started.filter(|_| dice.random_bool(0.5)) {
            shared.look(origin, run, &mut starts).await;
        }
    }
    starts
}

impl Shared {
    async fn start(&self, origin: &str, dice: &mut StdRng, starts: &mut Starts) -> Option<Uuid> {
        let number = self.number.fetch_add(1, Ordering::SeqCst);
        let request = self.http.post(format!("{origin}/v1/activities/send/runs"));
        let body = json!({ "input": self.calls.input(number, dice) });
        let (status, answer) = self.ask(request.json(&body), ANSWERED_WITHIN).await;
        match (status, answer["run_id"].as_str().and_then(|id| id.parse().ok())) {
            (201, Some(run)) => {
                self.acknowledged.fetch_add(1, Ordering::SeqCst);
                starts.acknowledged.push(run);
                return Some(run);
            }
            (503, _) => {
                self.refused.fetch_add(1, Ordering::SeqCst);
            }
            (0, _) => {}
            (status, _) => starts.odd.push(format!("a start was answered with {status}: {answer}")),
        }
        starts.unacknowledged += 1;
        None
    }

    async fn look(&self, origin: &str, run: Uuid, starts: &mut Starts) {
        let request = self.http.get(format!("{origin}/v1/runs/{run}?wait=2"));
        let (status, answer) = self.ask(request, ANSWERED_WITHIN).await;
        match (status, answer["ended_at"].is_string()) {
            (200, true) => drop(starts.told.insert(run, answer["state"].to_string().replace('"', ""))),
            (200 | 503 | 0, _) => {}
            (status, _) => starts.odd.push(format!("a look at a run was answered with {status}: {answer}")),
        }
    }

    /// Status and body; 0 and null when no whole answer came.
    async fn ask(&self, request: reqwest::RequestBuilder, limit: Duration) -> (u16, Value) {
        let answered = async {
            let answer = request.bearer_auth(&self.token).timeout(limit).send().await?;
            Ok::<_, reqwest::Error>((answer.status().as_u16(), answer.json().await?))
        };
        answered.await.unwrap_or((0, Value::Null))
    }
}
