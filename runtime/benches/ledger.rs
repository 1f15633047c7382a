//! Claim and settle of one effect, durable: the least that the ledger costs.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run must stop at once")]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use common::{Bench, TENANT};
use criterion::{Criterion, criterion_group, criterion_main};
use deedbox::effect::{Learned, OnUnknown, Resend, State};
use deedbox::store::effect::{Answer, Claim, Claimed, Settlement};
use deedbox::store::lease::{Place, Rooms, Wanted};
use deedbox::store::{self, Store};
use uuid::Uuid;

fn ledger(c: &mut Criterion) {
    let bench = Bench::open();
    bench.deploy("charge_once.wasm", "charge-once", "{}");
    let store = bench.node.store().clone();
    let leased = bench.runtime.block_on(async {
        common::start(&bench.node, "charge-once", "{}").await;
        let wanted = Wanted {
            worker: "bench".to_owned(),
            limit: 1,
            ttl_ms: 86_400_000,
            batch: Uuid::new_v4(),
            after: Place::default(),
            rooms: Rooms::default(),
        };
        store::lease::lease(&store, &wanted).await.unwrap().leased.remove(0)
    });
    let lease = store::lease::Lease { tenant: leased.tenant, run_id: leased.run_id, token: leased.token };
    let number = AtomicU64::new(0);
    let mut group = c.benchmark_group("ledger");
    group.bench_function("claim and settle", |b| {
        b.to_async(&bench.runtime).iter(|| claim_and_settle(&store, &lease, number.fetch_add(1, Ordering::Relaxed)));
    });
    group.finish();
}

async fn claim_and_settle(store: &Store, lease: &store::lease::Lease, number: u64) {
    let effect_id = *blake3::hash(&number.to_le_bytes()).as_bytes();
    let claim = Claim {
        lease: lease.clone(),
        attempt: 1,
        effect_id,
        keying: "activity-recipe",
        identity: "charge".to_owned(),
        provider: "stripe".to_owned(),
        account: "main".to_owned(),
        meter: "stripe".to_owned(),
        profile_version: "1".to_owned(),
        method: "POST".to_owned(),
        url: "https://api.stripe.com/v1/charges".to_owned(),
        digest: effect_id,
        wire_key: Some("b7a1e7a6-6b1c-8c38-9d7c-0a5c2b9fd0aa".to_owned()),
        carrier: Some(r#"{"header":"Idempotency-Key"}"#.to_owned()),
        window_ms: Some(86_400_000),
        window_from: "first",
        resend: Resend::Keyed,
        on_unknown: OnUnknown::Ask,
        also: None,
        lookup: None,
        lookup_sealed_with: None,
        streamed: false,
    };
    let Claimed::Won(known) = store::effect::claim(store, claim).await.unwrap() else { panic!("not won") };
    let answer = Answer {
        status: 201,
        headers: "[]".to_owned(),
        body: Some(vec![b'x'; 256]),
        source: "original".to_owned(),
        sealed_with: None,
    };
    let settlement = Settlement {
        tenant: TENANT.to_owned(),
        effect_id,
        holder: known.holder,
        learned: Learned::Answer,
        state: State::Completed,
        status: Some(201),
        answer: Some(answer),
        body_digest: None,
        leave: false,
    };
    assert!(store::effect::settle(store, &settlement).await.unwrap());
}

criterion_group!(benches, ledger);
criterion_main!(benches);
