//! Derivation of keys.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run must stop at once")]

use criterion::{Criterion, criterion_group, criterion_main};
use deedbox::key::{self, Identity, ProviderAccount, Rendering};
use uuid::Uuid;

fn keys(c: &mut Criterion) {
    let run_id = Uuid::from_u128(0x0190_b1c2_0000_7000_8000_0000_0000_0001);
    let provider = ProviderAccount { profile: "stripe", account: "main" };
    let run_key = key::run_key("acme", run_id);
    let named = Identity::Named { run_id, activity: "charge-once", name: "charge" };
    let effect_id = key::effect_id("acme", provider, named);
    let mut group = c.benchmark_group("keys");
    group.bench_function("run key", |b| b.iter(|| key::run_key("acme", run_id)));
    group.bench_function("subkey", |b| b.iter(|| key::subkey(&run_key, "email")));
    group.bench_function("named effect", |b| b.iter(|| key::effect_id("acme", provider, named)));
    group.bench_function("wire key, as text", |b| b.iter(|| key::wire_key(&effect_id).render(Rendering::Uuid)));
    group.finish();
}

criterion_group!(benches, keys);
criterion_main!(benches);
