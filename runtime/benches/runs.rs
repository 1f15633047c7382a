//! Whole runs with one effect each, from the start to the recorded end, with a provider on loopback: at 1, 32 and 128 at
//! once. Prints runs per second, p50 and p99, and what one run costs PostgreSQL. The worker does all it does in production.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run must stop at once")]
#![allow(clippy::print_stdout, reason = "its report is its purpose")]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{Bench, TENANT};
use criterion::{Criterion, criterion_group, criterion_main};
use deedbox::node::Node;
use deedbox::store;
use deedbox::store::notify::{Heard, Listener};
use sqlx::{Connection, PgConnection};
use tokio_util::sync::CancellationToken;
use tracing::field::Visit;

fn runs(c: &mut Criterion) {
    count_statements();
    let bench = Bench::open();
    let books = bench.provider();
    let origin = format!("http://{}", books.address);
    let policy = format!(r#"{{"egress":{{"allow":["{origin}"]}},"providers":{{"{origin}":"stripe"}}}}"#);
    bench.deploy("charge_once.wasm", "charge-once", &policy);
    let input = format!(r#"{{"order":"1","amount_cents":1,"customer":"c","provider_url":"{origin}"}}"#);
    let shutdown = CancellationToken::new();
    let node = bench.node.clone();
    let working = bench.runtime.spawn({
        let (node, shutdown) = (node.clone(), shutdown.clone());
        async move { node.work(shutdown).await }
    });
    let mut group = c.benchmark_group("whole run, one effect");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(5));
    for concurrency in [1, 32, 128] {
        let mut latencies = Vec::new();
        let mut spent = Spent::default();
        group.bench_function(format!("{concurrency} at once"), |b| {
            b.iter_custom(|iterations| {
                bench.runtime.block_on(batch(&bench, &input, concurrency, iterations, &mut latencies, &mut spent))
            });
        });
        report(concurrency, &mut latencies, &spent);
    }
    group.finish();
    shutdown.cancel();
    bench.runtime.block_on(working).unwrap();
}

/// Keeps `concurrency` runs going until `iterations` have ended, and gives the time that one took of the whole.
async fn batch(
    bench: &Bench,
    input: &str,
    concurrency: usize,
    iterations: u64,
    latencies: &mut Vec<Duration>,
    spent: &mut Spent,
) -> Duration {
    let before = Counters::read(&bench.url).await;
    let mut ended = Listener::open(bench.node.store()).await.unwrap();
    let mut under_way = std::collections::HashMap::new();
    let (mut started, mut done) = (0, 0);
    let began = Instant::now();
    while done < iterations {
        while under_way.len() < concurrency && started < iterations {
            let at = Instant::now();
            let run_id = common::start(&bench.node, "charge-once", input).await;
            under_way.insert(run_id.to_string(), at);
            started += 1;
        }
        let Heard::Ended(payload) = ended.next().await.unwrap() else { continue };
        let run_id = payload.split_once('/').map_or("", |(_, run_id)| run_id);
        if let Some(at) = under_way.remove(run_id) {
            latencies.push(at.elapsed());
            done += 1;
            check(&bench.node, run_id).await;
        }
    }
    let took = began.elapsed();
    spent.add(&before, &Counters::read(&bench.url).await, iterations, took);
    took
}

/// A benchmark of failures would be a fast one.
async fn check(node: &Node, run_id: &str) {
    if one_in_a_hundred(run_id) {
        let run = store::run::find(node.store(), TENANT, run_id.parse().unwrap()).await.unwrap().unwrap();
        assert_eq!(run.state, "completed", "{:?}", run.failure);
    }
}

fn one_in_a_hundred(run_id: &str) -> bool {
    run_id.bytes().map(usize::from).sum::<usize>().is_multiple_of(100)
}

#[derive(Default)]
struct Spent {
    runs: u64,
    took: Duration,
    commits: i64,
    wal_bytes: i64,
    statements: u64,
}

struct Counters {
    commits: i64,
    wal_bytes: i64,
    statements: u64,
}

impl Counters {
    async fn read(url: &str) -> Self {
        let mut connection = PgConnection::connect(url).await.unwrap();
        let sql = "select xact_commit, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint
                   from pg_stat_database where datname = current_database()";
        let (commits, wal_bytes) = sqlx::query_as(sql).fetch_one(&mut connection).await.unwrap();
        Self { commits, wal_bytes, statements: STATEMENTS.load(Ordering::Relaxed) }
    }
}

impl Spent {
    fn add(&mut self, before: &Counters, after: &Counters, runs: u64, took: Duration) {
        self.runs += runs;
        self.took += took;
        self.commits += after.commits - before.commits;
        self.wal_bytes += after.wal_bytes - before.wal_bytes;
        self.statements += after.statements - before.statements;
    }
}

fn report(concurrency: usize, latencies: &mut [Duration], spent: &Spent) {
    latencies.sort_unstable();
    let at = |share: f64| {
        let place = ((latencies.len().max(1) - 1) as f64 * share) as usize;
        latencies.get(place).copied().unwrap_or_default()
    };
    let runs = spent.runs.max(1) as f64;
    println!(
        "{concurrency:>4} at once: {:.0} runs/s, p50 {:.2?}, p99 {:.2?}; per run: {:.1} statements (round trips), {:.1} commits, {:.0} WAL bytes",
        runs / spent.took.as_secs_f64(),
        at(0.5),
        at(0.99),
        spent.statements as f64 / runs,
        spent.commits as f64 / runs,
        spent.wal_bytes as f64 / runs,
    );
}

static STATEMENTS: AtomicU64 = AtomicU64::new(0);

/// Counts the statements that sqlx says it has carried out.
fn count_statements() {
    struct Count;

    impl tracing::Subscriber for Count {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            metadata.target() == "sqlx::query"
        }

        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }

        fn event(&self, event: &tracing::Event<'_>) {
            let mut message = Statement(false);
            event.record(&mut message);
            STATEMENTS.fetch_add(u64::from(message.0), Ordering::Relaxed);
        }

        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    struct Statement(bool);

    impl Visit for Statement {
        fn record_debug(&mut self, field: &tracing::field::Field, _: &dyn std::fmt::Debug) {
            self.0 |= field.name() == "summary";
        }
    }

    // Set once per process; a second setting would mean that something else counts already.
    tracing::subscriber::set_global_default(Count).ok();
}

criterion_group!(benches, runs);
criterion_main!(benches);
