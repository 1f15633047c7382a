//! A provider and a node for one profile, and what is to be seen of one run: in the books, in the ledger, by the guest.

use std::time::{Duration, Instant};

use deedbox_books::{Arrival, Behaviour, Carrier, Options};
use serde_json::{Value, json};
use uuid::Uuid;

use super::cases::{Body, Case};
use crate::harness::{World, world};

/// A provider that did not tell by then cannot tell.
const ENOUGH_LOOKS: i32 = 4;

pub struct Stage<'a> {
    pub case: &'a Case,
    world: World,
}

/// What one run left behind.
#[derive(Debug)]
#[allow(dead_code, reason = "the profile and the scenario are for the message of a failed test")]
pub struct Seen {
    profile: &'static str,
    scenario: String,
    pub state: String,
    /// Requests that asked for the effect, as the provider counts them.
    pub sends: usize,
    pub applied: usize,
    pub window_ms: Option<u64>,
    pub statuses: Vec<Option<u64>>,
    pub sources: Vec<String>,
    pub errors: Vec<Option<String>>,
    pub retry_after: Option<String>,
}

impl<'a> Stage<'a> {
    pub async fn set(case: &'a Case) -> Self {
        let mut config = world::config();
        config.gateway.max_send_ms = 2_000;
        config.gateway.max_look_up_pause_ms = 50;
        let options = Options { keyless: false, convention: Some(case.provider.clone()) };
        let world = World::with(options, config).await;
        world.deploy("send", case.profile, json!({ "retry": { "max_attempts": 2 } })).await;
        Self { case, world }
    }

    /// The same named effect three times in one attempt, each repeated in the body while its outcome is unknown.
    pub async fn call_thrice(&self, scenario: &str, behaviours: &[Behaviour]) -> Seen {
        self.world.script(behaviours).await;
        let call = self.call(scenario, 20);
        self.run(scenario, json!({ "calls": [call, call, call] }), false).await
    }

    /// The answer is lost, the attempt fails, and the next one comes when two months have passed.
    pub async fn call_again_after_60_days(&self, scenario: &str) -> Seen {
        self.world.script(&[Behaviour::CutAfterApply]).await;
        let input = json!({ "calls": [self.call(scenario, 0)], "then": ["fail", "return"] });
        self.run(scenario, input, true).await
    }

    fn call(&self, scenario: &str, repeat: u32) -> Value {
        let case = self.case;
        let url = format!("{}{}", self.world.origin(), case.path.replace("{s}", scenario));
        let headers: Vec<_> = case.headers.iter().map(|(name, value)| json!([name, value])).collect();
        let mut call = json!({
            "method": case.method, "url": url, "headers": headers, "identity": { "named": "op" },
            "timeout_ms": 400, "repeat": repeat,
        });
        match &case.body {
            Body::Json(body) => call["json"] = body.clone(),
            Body::Text(text) => call["body"] = json!(text.replace("{s}", scenario)),
        }
        call
    }

    async fn run(&self, scenario: &str, input: Value, time_passes: bool) -> Seen {
        // What an earlier scenario left open must not be asked about in this one.
        self.world.database.execute("update effects set look_at = null").await;
        let before = self.world.books.applied().await.unwrap().len();
        let arrived = self.world.books.arrivals().await.unwrap().len();
        let run = self.world.start("send", input).await;
        if time_passes {
            world::work_once(&self.world.node).await;
            let later = "update effects set first_sent_at = first_sent_at - interval '60 days',
                                            last_sent_at = last_sent_at - interval '60 days'";
            self.world.database.execute(later).await;
        }
        self.work(run).await;
        self.seen(scenario, run, before, arrived).await
    }

    async fn seen(&self, scenario: &str, run: Uuid, before: usize, arrived: usize) -> Seen {
        let arrivals = self.world.books.arrivals().await.unwrap().split_off(arrived);
        // A look-up may be a POST as well: it has other headers.
        let is_send = |arrival: &Arrival| {
            let mut headers = self.case.headers.iter();
            arrival.method == self.case.method && headers.all(|(name, value)| arrival.header(name) == Some(*value))
        };
        let sent: Vec<_> = arrivals.into_iter().filter(is_send).collect();
        let row = self.effect(run).await;
        let keys: Vec<_> = sent.iter().map(|arrival| arrival.key.clone()).collect();
        if !matches!(self.case.provider.carrier, Carrier::None) {
            assert!(row.wire_key.is_some(), "{} {scenario}: no wire key", self.case.profile);
            let same = keys.iter().all(|key| *key == row.wire_key);
            assert!(same, "{} {scenario}: {keys:?}, not {:?}", self.case.profile, row.wire_key);
        }
        assert_eq!(row.sends, sent.len(), "{} {scenario}: the ledger counts as the provider does", self.case.profile);
        let record = self.world.run(run).await;
        let output: Value = record.output.as_deref().map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
        let outcomes = output.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Seen {
            profile: self.case.profile,
            scenario: scenario.to_owned(),
            state: row.state,
            sends: sent.len(),
            applied: self.world.books.applied().await.unwrap().len() - before,
            window_ms: row.window_ms,
            statuses: outcomes.iter().map(|one| one["status"].as_u64()).collect(),
            sources: outcomes.iter().filter_map(|one| text(&one["source"])).collect(),
            errors: outcomes.iter().map(|one| text(&one["message"])).collect(),
            retry_after: outcomes.first().and_then(|one| {
                let headers = one["headers"].as_array()?.iter();
                headers.filter(|pair| pair[0] == "retry-after").find_map(|pair| text(&pair[1]))
            }),
        }
    }

    /// Until the run has ended, or waits for an answer that nobody but a person can give.
    async fn work(&self, run: Uuid) {
        let give_up = Instant::now() + Duration::from_secs(30);
        loop {
            let worked = self.world.node.worker().run_once().await.unwrap();
            let state = self.world.run(run).await.state;
            let effect = self.effect(run).await;
            let asked = !self.case.asks || effect.looks >= ENOUGH_LOOKS;
            if ["completed", "failed"].contains(&state.as_str()) || (effect.state == "escaped" && asked) {
                return;
            }
            assert!(Instant::now() < give_up, "{}: the run is {state}, its effect {}", self.case.profile, effect.state);
            if !worked {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    async fn effect(&self, run: Uuid) -> Row {
        let sql = "select state, wire_key, window_ms, holder_send, looks from effects where run_id = $1";
        let row: (String, Option<String>, Option<i64>, i32, i32) =
            sqlx::query_as(sql).bind(run).fetch_one(&mut self.world.database.connect().await).await.unwrap();
        let window_ms = row.2.and_then(|ms| u64::try_from(ms).ok());
        Row { state: row.0, wire_key: row.1, window_ms, sends: row.3 as usize, looks: row.4 }
    }
}

struct Row {
    state: String,
    wire_key: Option<String>,
    window_ms: Option<u64>,
    sends: usize,
    looks: i32,
}
