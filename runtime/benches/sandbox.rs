//! Instantiation and call of a compiled component, without a database statement in between.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run must stop at once")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Bench, TENANT, component};
use criterion::{Criterion, criterion_group, criterion_main};
use deedbox::gateway::{Attempt, Lease, TenantLimits};
use deedbox::host::{self, Bounds, Execution, Outcome, RunInfo};
use deedbox::policy::Policy;
use deedbox::store;
use tokio::time::Instant;
use uuid::Uuid;

fn sandbox(c: &mut Criterion) {
    let bench = Bench::open();
    let node = bench.node.clone();
    let module = bench.runtime.block_on(async {
        let uploaded = node.registry().upload(TENANT, component("deedbox_test_guests.wasm").into()).await.unwrap();
        node.registry().load(TENANT, uploaded.digest).await.unwrap()
    });
    c.bench_function("instantiate, call and drop", |b| {
        b.to_async(&bench.runtime).iter(|| async {
            let ended = host::execute(node.registry().engine(), &module, execution(&node)).await;
            assert!(matches!(ended.outcome, Outcome::Completed(_)));
        });
    });
}

fn execution(node: &deedbox::node::Node) -> Execution {
    let record = store::lease::Lease { tenant: TENANT.to_owned(), run_id: Uuid::now_v7(), token: 1 };
    let clock = node.gateway().clock().elapsed();
    let lease = Lease::new(record, clock + Duration::from_secs(60));
    let policy = Arc::new(Policy::default());
    Execution {
        attempt: Attempt::new(node.gateway().clone(), lease, "noop".to_owned(), 1, policy, &TenantLimits::default()),
        info: RunInfo { activity: "noop".to_owned(), attempt: 1, max_attempts: 1 },
        export: "noop".to_owned(),
        input: "{}".to_owned(),
        bounds: Bounds::defaults(node.registry().engine().config()),
        deadline: Instant::now() + Duration::from_secs(60),
        timeout: "start_to_close",
        random_seed: Some([7; 32]),
    }
}

criterion_group!(benches, sandbox);
criterion_main!(benches);
