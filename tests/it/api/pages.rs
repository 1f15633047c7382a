//! Lists in pages, while what they list grows.

use serde_json::{Value, json};

use super::Api;
use super::client::Client;

/// The ids of one page and the cursor for the next.
async fn page(client: &Client, list: &str, limit: usize, after: &Option<String>) -> (Vec<String>, Option<String>) {
    let after = after.as_ref().map(|after| format!("&after={after}")).unwrap_or_default();
    let page = client.get(&format!("{list}limit={limit}{after}")).await.expect(200);
    let id = |item: &Value| item.get("effect_id").unwrap_or(&item["run_id"]).as_str().unwrap().to_owned();
    let ids: Vec<String> = page["items"].as_array().unwrap().iter().map(id).collect();
    assert!(ids.len() <= limit, "{page}");
    (ids, page["after"].as_str().map(str::to_owned))
}

/// Starts effects of a run of their own.
async fn send(api: &Api, names: &[&str]) -> String {
    let calls: Vec<Value> = names.iter().map(|name| api.charge(name)).collect();
    let run = api.start("send", json!({ "calls": calls })).await;
    api.work().await;
    run
}

/// F-K08.
#[tokio::test(flavor = "multi_thread")]
async fn runs_are_paged_without_gap_or_repeat_while_runs_are_started() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let mut expected = Vec::new();
    for n in 0..11 {
        expected.push(api.start("noop", json!(n)).await);
    }
    // All at one time: only the ids tell them apart.
    api.world.database.execute("update runs set created_at = deedbox_now() - interval '1 hour'").await;
    let (mut seen, mut after) = (Vec::new(), None);
    for _ in 0..10 {
        let (ids, next) = page(&api.acme, "/v1/runs?", 3, &after).await;
        seen.extend(ids);
        after = next;
        if after.is_none() {
            break;
        }
        api.start("noop", json!("new")).await;
    }
    assert_eq!(after, None);
    expected.sort();
    expected.reverse();
    assert_eq!(seen, expected);
}

/// F-K08.
#[tokio::test(flavor = "multi_thread")]
async fn effects_are_paged_without_gap_or_repeat_while_effects_are_added() {
    let api = Api::idle().await;
    api.deploy("send", api.policy("stripe")).await;
    let run = send(&api, &["a", "b", "c", "d", "e", "f", "g"]).await;
    api.world.database.execute("update effects set first_sent_at = deedbox_now() - interval '1 hour'").await;
    let (mut seen, mut after) = (Vec::new(), None);
    for turn in 0..10 {
        let (ids, next) = page(&api.acme, "/v1/effects?state=completed&", 3, &after).await;
        seen.extend(ids);
        after = next;
        if after.is_none() {
            break;
        }
        if turn < 2 {
            send(&api, &["x", "y"]).await;
        }
    }
    let (all, end) = page(&api.acme, "/v1/effects?", 500, &None).await;
    assert_eq!((all.len(), end), (11, None));
    assert_eq!(seen, all);
    let of_run = api.effects_of(&run).await;
    let (first, next) = page(&api.acme, &format!("/v1/runs/{run}/effects?"), 4, &None).await;
    let (second, end) = page(&api.acme, &format!("/v1/runs/{run}/effects?"), 4, &next).await;
    assert_eq!((first.len(), second.len(), end, of_run.len()), (4, 3, None, 7));
    assert_eq!([first, second].concat(), all[..7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_last_page_has_no_cursor_and_a_limit_is_cut() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    for n in 0..4 {
        api.start("noop", json!(n)).await;
    }
    assert_eq!(page(&api.acme, "/v1/runs?", 4, &None).await.1, None);
    assert_eq!(page(&api.acme, "/v1/runs?", 1_000_000, &None).await.0.len(), 4);
    let (_, after) = page(&api.acme, "/v1/runs?", 2, &None).await;
    assert_eq!(page(&api.acme, "/v1/runs?", 2, &after).await.1, None);
}

/// F-K08 and F-K01: a cursor is a place in a list, and opens nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_no_list_gave_is_refused_and_a_foreign_one_shows_nothing() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    api.deploy("send", api.policy("stripe")).await;
    send(&api, &["a", "b"]).await;
    api.start("noop", json!(1)).await;
    let runs = page(&api.acme, "/v1/runs?", 1, &None).await.1.unwrap();
    let effects = page(&api.acme, "/v1/effects?", 1, &None).await.1.unwrap();
    let far = "f".repeat(runs.len());
    let wrong = ["", "x", "!!!!", "AAAA", "%00", &runs[1..], &format!("{runs}A"), far.as_str()];
    for list in ["/v1/runs", "/v1/effects"] {
        let other = if list == "/v1/runs" { &effects } else { &runs };
        for cursor in wrong.iter().copied().chain([other.as_str()]) {
            let answer = api.acme.get(&format!("{list}?after={cursor}")).await;
            if cursor == far && answer.status == 200 {
                continue;
            }
            answer.refused(400, "validation_error");
        }
    }
    let other = api.tenant("other").await;
    assert!(page(&other, "/v1/runs?", 9, &Some(runs)).await.0.is_empty());
    assert!(page(&other, "/v1/effects?", 9, &Some(effects)).await.0.is_empty());
}
