//! Workers: who runs a run, how often, when, and who stops.

use std::time::{Duration, Instant};

use deedbox::config::Config;
use deedbox::node::Node;
use deedbox_books::Options;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{World, config};

mod attempts;
mod drain;
mod leasing;
mod renewal;
mod retry;
mod wake;

const SOON: Duration = Duration::from_secs(20);

/// A node's worker at work, in a task of its own.
struct Working {
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Working {
    fn begin(node: &Node) -> Self {
        let shutdown = CancellationToken::new();
        Self { task: tokio::spawn(node.worker().clone().run(shutdown.clone())), shutdown }
    }

    /// Asks the worker to drain, and waits until it has.
    async fn end(self) {
        self.shutdown.cancel();
        tokio::time::timeout(SOON, self.task).await.expect("the worker drains").unwrap();
    }
}

async fn world_with(change: impl FnOnce(&mut Config)) -> World {
    World::with(Options { keyless: false, convention: None }, changed(change)).await
}

fn changed(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = config();
    change(&mut config);
    config
}

/// Looks again and again until it is so.
pub async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let give_up = Instant::now() + SOON;
    while !is_so().await {
        assert!(Instant::now() < give_up, "it never came to this: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn until_ended(world: &World, run: Uuid) {
    until("the run has ended", async || world.run(run).await.ended_at.is_some()).await;
}

async fn until_running(world: &World, run: Uuid) {
    until("the run is running", async || world.run(run).await.state == "running").await;
}

/// The only value of a query's only row.
async fn ask<T>(world: &World, sql: &'static str) -> T
where
    T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    sqlx::query_scalar(sql).fetch_one(&mut world.database.connect().await).await.unwrap()
}

fn post(world: &World) -> Value {
    serde_json::json!({ "calls": [{ "method": "POST", "url": world.charges(), "expect": 201 }] })
}
