//! What the database and the providers' books say once all is over, read in one go for the checks.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use deedbox_books::{Arrival, Books, Entry};
use uuid::Uuid;

use super::load::Starts;
use crate::harness::Database;

#[derive(Clone, Debug)]
pub struct Run {
    pub state: String,
    pub attempts: i32,
    pub spent: i32,
    pub max_attempts: i32,
    pub token: i64,
    pub ended: bool,
}

#[derive(Clone, Debug)]
pub struct Attempt {
    pub run: Uuid,
    pub attempt: i32,
    pub token: i64,
    pub worker: String,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    pub outcome: Option<String>,
    /// A JSON text, for whoever reads of a breach.
    #[allow(dead_code, reason = "printed when a test fails")]
    pub failure: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Effect {
    pub id: Vec<u8>,
    pub run: Uuid,
    /// Its identity in words: for those without a key, the mark of the call.
    pub identity: String,
    pub state: String,
    pub wire_key: Option<String>,
    pub doubled: bool,
    pub holder_send: i32,
    pub status: Option<i32>,
}

#[derive(Clone, Debug)]
pub struct Send {
    pub effect: Vec<u8>,
    pub send: i32,
    pub run: Uuid,
    pub attempt: i32,
    pub token: i64,
    /// When it began and ended, and with what, for whoever reads of a breach.
    #[allow(dead_code, reason = "printed when a test fails")]
    pub course: String,
}

/// One provider's books.
#[derive(Clone, Debug, Default)]
pub struct Book {
    pub arrivals: Vec<Arrival>,
    pub applied: Vec<Entry>,
}

/// All of it. Attempts and sends are in their order.
#[derive(Clone, Debug)]
pub struct Seen {
    pub starts: Starts,
    pub runs: HashMap<Uuid, Run>,
    pub attempts: Vec<Attempt>,
    pub effects: Vec<Effect>,
    pub sends: Vec<Send>,
    pub keyed: Book,
    pub keyless: Book,
}

impl Seen {
    pub async fn read(database: &Database, starts: Starts, keyed: Books, keyless: Books) -> Self {
        let mut all = Self {
            starts,
            runs: HashMap::new(),
            attempts: Vec::new(),
            effects: Vec::new(),
            sends: Vec::new(),
            keyed: book(keyed).await,
            keyless: book(keyless).await,
        };
        all.read_runs(database).await;
        all.read_effects(database).await;
        all
    }

    async fn read_runs(&mut self, database: &Database) {
        let mut connection = database.connect().await;
        let runs = "select run_id, state, attempts, spent, max_attempts, token, ended_at is not null from runs";
        let rows: Vec<(Uuid, String, i32, i32, i32, i64, bool)> =
            sqlx::query_as(runs).fetch_all(&mut connection).await.unwrap();
        self.runs = rows
            .into_iter()
            .map(|(id, state, attempts, spent, max_attempts, token, ended)| {
                (id, Run { state, attempts, spent, max_attempts, token, ended })
            })
            .collect();
        let attempts = "select run_id, attempt, token, worker, started_at, ended_at, outcome, failure from attempts
                        order by run_id, attempt";
        type Row = (Uuid, i32, i64, String, DateTime<Utc>, Option<DateTime<Utc>>, Option<String>, Option<String>);
        let rows: Vec<Row> = sqlx::query_as(attempts).fetch_all(&mut connection).await.unwrap();
        self.attempts = rows
            .into_iter()
            .map(|(run, attempt, token, worker, started_at, ended_at, outcome, failure)| Attempt {
                run,
                attempt,
                token,
                worker,
                started_at,
                ended_at,
                outcome,
                failure,
            })
            .collect();
    }

    async fn read_effects(&mut self, database: &Database) {
        let mut connection = database.connect().await;
        let effects = "select effect_id, run_id, identity, state, wire_key, doubled, holder_send, status from effects";
        type Row = (Vec<u8>, Uuid, String, String, Option<String>, bool, i32, Option<i32>);
        let rows: Vec<Row> = sqlx::query_as(effects).fetch_all(&mut connection).await.unwrap();
        self.effects = rows
            .into_iter()
            .map(|(id, run, identity, state, wire_key, doubled, holder_send, status)| Effect {
                id,
                run,
                identity,
                state,
                wire_key,
                doubled,
                holder_send,
                status,
            })
            .collect();
        let sends = "select effect_id, send, run_id, attempt, token,
                            concat_ws(' ', started_at, ended_at, result, status) from sends order by effect_id, send";
        let rows: Vec<(Vec<u8>, i32, Uuid, i32, i64, String)> =
            sqlx::query_as(sends).fetch_all(&mut connection).await.unwrap();
        self.sends = rows
            .into_iter()
            .map(|(effect, send, run, attempt, token, course)| Send { effect, send, run, attempt, token, course })
            .collect();
    }

    /// Everything about the run that a line names.
    pub fn story_of(&self, line: &str) -> Vec<String> {
        let named = |run: &Uuid| line.contains(&run.to_string());
        let attempts = self.attempts.iter().filter(|attempt| named(&attempt.run)).map(|attempt| format!("{attempt:?}"));
        let effects = self.effects.iter().filter(|effect| named(&effect.run)).map(|effect| format!("{effect:?}"));
        let sends = self.sends.iter().filter(|send| named(&send.run)).map(|send| format!("{send:?}"));
        attempts.chain(effects).chain(sends).collect()
    }

    /// The figures, to be quoted.
    pub fn figures(&self) -> String {
        let ended = |state: &str| self.runs.values().filter(|run| run.state == state).count();
        let effects = |state: &str| self.effects.iter().filter(|effect| effect.state == state).count();
        let lost = self.starts.acknowledged.iter().filter(|run| !self.runs.contains_key(run)).count();
        format!(
            "{} starts confirmed, {} not; {} runs: {} completed, {} failed, {} open; {} attempts, most spent {}; \
             {} effects: {} completed, {} escaped; {} sends, {} arrivals, {} applied, {} doubled, {lost} lost",
            self.starts.acknowledged.len(),
            self.starts.unacknowledged,
            self.runs.len(),
            ended("completed"),
            ended("failed"),
            self.runs.values().filter(|run| !run.ended).count(),
            self.attempts.len(),
            self.runs.values().map(|run| run.spent).max().unwrap_or_default(),
            self.effects.len(),
            effects("completed"),
            effects("escaped"),
            self.sends.len(),
            self.keyed.arrivals.len() + self.keyless.arrivals.len(),
            self.keyed.applied.len() + self.keyless.applied.len(),
            self.effects.iter().filter(|effect| effect.doubled).count(),
        )
    }
}

async fn book(books: Books) -> Book {
    Book { arrivals: books.arrivals().await.unwrap(), applied: books.applied().await.unwrap() }
}
