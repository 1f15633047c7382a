//! A database that is away while a request with a key comes: the refusal is not the answer to the key.

use std::time::Duration;

use super::*;
use crate::harness::own_server::user;
use crate::harness::proxy::{Proxy, Target, Way};

/// F-A07, R-K16.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_found_no_database_runs_when_it_is_back() {
    let api = noops().await;
    let proxy = Proxy::start(Target::of_url(&api.world.database.url), 1).await;
    let behind = Database { url: proxy.url(user(), api.world.database.name()) };
    let origin = serve(&behind, config(), api.stop.clone()).await;
    let acme = Client::new(&origin, Some(mint(&api.world, "acme").await));
    let asks = [
        Ask::start(&acme, &json!({ "input": 1 })).key(&fresh_key()),
        Ask::put(&acme, "/v1/secrets/a", &json!({ "value": "x" })).key(&fresh_key()),
    ];
    acme.get("/readyz").await.expect(200);
    proxy.set(Way::Refuse);
    proxy.cut();
    for ask in &asks {
        for _ in 0..2 {
            let away = ask.send().await;
            away.refused(503, "runner_unavailable");
            assert!(!is_replay(&away) && !away.header("retry-after").is_empty(), "{away:?}");
        }
    }
    assert_eq!((runs(&api).await.len(), records(&api).await), (0, 0));
    proxy.set(Way::Pass);
    for (ask, status) in asks.iter().zip([201, 204]) {
        let first = answered(ask).await;
        done(&first, status);
        replays(&answered(ask).await, &first);
    }
    assert_eq!(runs(&api).await.len(), 1);
}

/// The first answer that is not of a database that is away: connections that are gone say so once each.
async fn answered(ask: &Ask) -> Answer {
    let asking = async {
        loop {
            let answer = ask.send().await;
            if answer.status != 503 {
                return answer;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asking).await.unwrap()
}
