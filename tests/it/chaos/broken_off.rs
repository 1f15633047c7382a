//! Statements that nobody waits for any more: a caller that hung up, a worker that was asked to stop. What follows on the same
//! connection must not suffer.

use std::time::Duration;

use deedbox::store::{self, Store};

use super::until;
use crate::harness::Database;
use crate::harness::own_server::user;
use crate::harness::proxy::{Proxy, Target, Way};

const DELAY: Duration = Duration::from_millis(500);

/// A connection that came back with an open transaction would confirm all that follows, and lose it.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_is_broken_off_at_its_beginning_is_not_left_open() {
    let database = Database::fresh().await;
    let proxy = Proxy::start(Target::of_url(&database.url), 1).await;
    let store = Store::connect(&proxy.url(user(), database.name()), 1).unwrap();
    store.ping().await.unwrap();
    proxy.set(Way::Delay(DELAY));
    let other = store.clone();
    let begun = tokio::spawn(async move { store::duty::rescue(&other, 1, "{}", "{}").await });
    let mut outside = database.connect().await;
    until("the database has begun, and its answer is on the way", async || {
        let open = "select count(*) from pg_stat_activity
                    where datname = current_database() and state = 'idle in transaction'";
        sqlx::query_scalar::<_, i64>(open).fetch_one(&mut outside).await.unwrap() == 1
    })
    .await;
    begun.abort();
    assert!(begun.await.unwrap_err().is_cancelled(), "it was not broken off");
    proxy.set(Way::Pass);
    assert!(store::tenant::create(&store, "shop").await.unwrap());
    let kept = sqlx::query_scalar::<_, i64>("select count(*) from tenants where tenant = 'shop'");
    assert_eq!(kept.fetch_one(&mut outside).await.unwrap(), 1, "what was confirmed is not there");
    store.close().await;
}
