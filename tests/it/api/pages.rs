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

/// A list whose items have a name, and how another one is added.
struct Named {
    list: &'static str,
    /// The member of the answer that holds the items.
    items: &'static str,
    /// The member of an item that names it.
    name: &'static str,
}

const NAMED: [Named; 9] = [
    Named { list: "/v1/modules", items: "items", name: "digest" },
    Named { list: "/v1/activities", items: "items", name: "activity" },
    Named { list: "/v1/activities/a0", items: "versions", name: "version" },
    Named { list: "/v1/secrets", items: "items", name: "name" },
    Named { list: "/v1/runs/{run}/attempts", items: "items", name: "attempt" },
    Named { list: "/v1/runs/{run}/log", items: "items", name: "text" },
    Named { list: "/v1/tenants", items: "items", name: "tenant" },
    Named { list: "/v1/tenants/acme/tokens", items: "items", name: "token_id" },
    Named { list: "/v1/tenants/acme/signers", items: "items", name: "signer" },
];

const COUNT: i32 = 5;

/// One more of everything that is listed. They are numbered so that each comes behind those that are there.
async fn add(api: &Api, run: &str, number: i32) {
    let sql = format!(
        "insert into modules (tenant, digest, bytes, imports, activities)
           select 'acme', decode(lpad('{number}', 64, '0'), 'hex'), 'x', '[]', '[]';
         insert into activities (tenant, activity, latest) values ('acme', 'a{number}', 1) on conflict do nothing;
         insert into activity_versions (tenant, activity, version, digest, export, policy)
           select 'acme', 'a{number}', 1, decode(lpad('{number}', 64, '0'), 'hex'), 'x', '{{}}' where {number} > 0;
         insert into activity_versions (tenant, activity, version, digest, export, policy)
           select 'acme', 'a0', {number} + 1, decode(lpad('{number}', 64, '0'), 'hex'), 'x', '{{}}';
         insert into secrets (tenant, name, key_id, sealed) values ('acme', 's{number}', 'k', 'x');
         insert into attempts (tenant, run_id, attempt, token, worker) values ('acme', '{run}', {number} + 1, 1, 'w');
         insert into logs (tenant, run_id, attempt, stream, text, truncated)
           values ('acme', '{run}', {number} + 1, 'stdout', 'out {number}', false),
                  ('acme', '{run}', {number} + 1, 'stderr', 'err {number}', false);
         insert into signers (tenant, signer, public_key, by_token, by_label)
           values ('acme', 'k{number}', decode(lpad('{number}', 64, '0'), 'hex'), gen_random_uuid(), '');
         insert into tenants (tenant) values ('z{number}');"
    );
    api.world.database.execute(&sql).await;
    super::mint(&api.world, "acme").await;
}

/// F-K08. Each list, two items at a time, while one of each is added between the pages: what was there is seen once, in order,
/// and nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn every_list_is_paged_without_gap_or_repeat_while_it_grows() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    for number in 0..COUNT {
        add(&api, &run, number).await;
    }
    let admin = api.admin().await;
    let mut next = COUNT;
    for Named { list, items, name } in NAMED {
        let path = list.replace("{run}", &run);
        let client = if list.starts_with("/v1/tenants") { &admin } else { &api.acme };
        let names = |page: &Value| -> Vec<String> {
            page[items].as_array().unwrap().iter().map(|item| item[name].to_string()).collect()
        };
        let before = client.get(&format!("{path}?limit=500")).await.expect(200);
        assert_eq!(before["after"], Value::Null, "{list}");
        let (mut seen, mut after) = (Vec::new(), String::new());
        for turn in 0.. {
            assert!(turn < 30, "{list} has no end");
            let page = client.get(&format!("{path}?limit=2{after}")).await.expect(200);
            seen.extend(names(&page));
            let Some(cursor) = page["after"].as_str() else { break };
            after = format!("&after={cursor}");
            if turn < 3 {
                add(&api, &run, next).await;
                next += 1;
            }
        }
        let before = names(&before);
        assert!(before.len() >= 5, "{list}: {before:?}");
        let kept: Vec<_> = seen.iter().filter(|name| before.contains(name)).cloned().collect();
        assert_eq!(kept, before, "{list}");
        let once: std::collections::BTreeSet<_> = seen.iter().collect();
        assert_eq!(once.len(), seen.len(), "{list}: {seen:?}");
    }
}

/// F-K08 and F-K01.
#[tokio::test(flavor = "multi_thread")]
async fn the_cursor_of_every_list_is_opaque_checked_and_opens_nothing_of_others() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    for number in 0..3 {
        add(&api, &run, number).await;
    }
    let (admin, other) = (api.admin().await, api.tenant("other").await);
    let mut cursors = Vec::new();
    for Named { list, .. } in NAMED {
        let path = list.replace("{run}", &run);
        let client = if list.starts_with("/v1/tenants") { &admin } else { &api.acme };
        for wrong in ["after=", "after=x", "after=!!!!", "after=AAAA", "limit=0", "limit=x", "limit=-1", "colour=1"] {
            client.get(&format!("{path}?{wrong}")).await.refused(400, "validation_error");
        }
        let first = client.get(&format!("{path}?limit=1")).await.expect(200);
        let cursor = first["after"].as_str().unwrap_or_else(|| panic!("{list}: {first}")).to_owned();
        for wrong in [format!("{cursor}A"), cursor[1..].to_owned(), cursor.to_lowercase() + "="] {
            client.get(&format!("{path}?after={wrong}")).await.refused(400, "validation_error");
        }
        if !list.contains("/a0") && !list.contains("{run}") && !list.starts_with("/v1/tenants") {
            let theirs = other.get(&format!("{path}?after={cursor}")).await.expect(200);
            assert_eq!(theirs["items"], json!([]), "{list}");
        }
        cursors.push((list, path, cursor));
    }
    // One list of each form: a time with a digest, a name, a number, a number with a name, a time with an id.
    let forms = [0, 1, 2, 5, 7];
    for (at, from) in forms.iter().flat_map(|at| forms.map(|from| (*at, from))).filter(|(at, from)| at != from) {
        let ((list, path, _), (_, _, cursor)) = (&cursors[at], &cursors[from]);
        let client = if list.starts_with("/v1/tenants") { &admin } else { &api.acme };
        client.get(&format!("{path}?after={cursor}")).await.refused(400, "validation_error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn providers_are_paged_by_name_a_tenants_own_among_those_of_the_program() {
    let api = Api::idle().await;
    let names = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let whole = names(&api.acme.get("/v1/providers?limit=500").await.expect(200));
    assert!(whole.is_sorted() && whole.len() > 20, "{whole:?}");
    let (mut seen, mut after) = (Vec::new(), String::new());
    while seen.len() <= whole.len() {
        let page = api.acme.get(&format!("/v1/providers?limit=7{after}")).await.expect(200);
        seen.extend(names(&page));
        let Some(cursor) = page["after"].as_str() else { break };
        after = format!("&after={cursor}");
    }
    assert_eq!(seen, whole);
}
