//! The engine under load while its database and its own processes fail: what it has confirmed must all come to an end,
//! once, whatever was cut, killed, stopped or lost on the way. Each test tells its figures on one line, and its seed.

mod broken_off;
mod clocks;
mod disk;
mod faults;
mod fleet;
mod invariants;
mod killed;
mod load;
mod planted;
mod pool;
mod restarts;
mod seen;
mod stage;
mod standby;
mod storm;
mod together;

use std::time::{Duration, Instant};

/// For everything that must happen soon.
const SOON: Duration = Duration::from_secs(40);

/// Looks again and again until it is so.
async fn until(what: &str, is_so: impl AsyncFnMut() -> bool) {
    within(SOON, what, is_so).await;
}

async fn within(limit: Duration, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let give_up = Instant::now() + limit;
    while !is_so().await {
        assert!(Instant::now() < give_up, "it never came to this: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
