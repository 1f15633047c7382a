//! Leasing one batch from a queue of a thousand runs and from one of a million, in one database and by turns: what a long
//! queue costs. Prints both, and their ratio.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run must stop at once")]
#![allow(clippy::print_stdout, reason = "its result is for people")]

mod common;

use std::time::{Duration, Instant};

use common::{Bench, TENANT};
use deedbox::store::Store;
use deedbox::store::lease::{Place, Rooms, Wanted, lease};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

const SHORT: u32 = 1_000;
const LONG: u32 = 1_000_000;
const BATCH: i64 = 16;
const ROUNDS: usize = 60;
const TURNS: usize = 2;

fn main() {
    let bench = Bench::open();
    bench.deploy("charge_once.wasm", "charge-once", "{}");
    let store = bench.node.store().clone();
    let url = bench.url.clone();
    bench.runtime.block_on(async {
        let mut connection = PgConnection::connect(&url).await.unwrap();
        let (mut short, mut long) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            fill(&mut connection, SHORT).await;
            measure(&store, &mut short).await;
            fill(&mut connection, LONG).await;
            measure(&store, &mut long).await;
        }
        let (short, long) = (Spread::of(short), Spread::of(long));
        println!("dequeue of {BATCH} from {SHORT} runs: {short}");
        println!("dequeue of {BATCH} from {LONG} runs: {long}");
        let ratio = long.median.as_secs_f64() / short.median.as_secs_f64();
        println!("dequeue ratio, {LONG} to {SHORT} runs: {ratio:.2} (medians)");
        assert!(ratio < 2.0, "a long queue must not be slow");
    });
}

/// An empty queue, then so many ready runs, as a server has them that was at work for a while: counted and vacuumed.
async fn fill(connection: &mut PgConnection, runs: u32) {
    let insert = format!(
        "insert into runs (tenant, run_id, activity, version, state, input, retry, max_attempts, rank)
         select '{TENANT}', gen_random_uuid(), 'charge-once', 1, 'queued', 'null', '{{}}', 3,
                deedbox_rank(deedbox_now() - interval '1 hour' + n * interval '1 millisecond', 5::smallint)
         from generate_series(1, {runs}) n"
    );
    for sql in ["truncate runs cascade", insert.as_str(), "vacuum analyze runs", "checkpoint"] {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut *connection).await.unwrap();
    }
}

async fn measure(store: &Store, taken: &mut Vec<Duration>) {
    for _ in 0..ROUNDS {
        let wanted = Wanted {
            worker: "bench".to_owned(),
            limit: BATCH,
            ttl_ms: 3_600_000,
            batch: Uuid::new_v4(),
            after: Place::default(),
            rooms: Rooms::default(),
        };
        let began = Instant::now();
        let look = lease(store, &wanted).await.unwrap();
        taken.push(began.elapsed());
        // Sixty batches do not empty the short queue.
        assert_eq!(look.leased.len() as i64, BATCH);
    }
}

struct Spread {
    median: Duration,
    p90: Duration,
}

impl Spread {
    fn of(mut taken: Vec<Duration>) -> Self {
        taken.sort();
        Self { median: taken[taken.len() / 2], p90: taken[taken.len() * 9 / 10] }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "median {:.2?}, 90 of 100 within {:.2?}", self.median, self.p90)
    }
}
