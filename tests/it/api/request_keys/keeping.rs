//! How long an answer is kept: a day at least, as long as its run is alive, and never longer than the run is there.

use super::*;

/// The time that the database shows stands still, so many seconds after midnight of a day to come.
async fn stand_at(api: &Api, seconds: u32) {
    let sql = format!(
        "create or replace function deedbox_now() returns timestamptz language sql stable parallel safe
         as $$ select timestamptz '2040-01-01 00:00:00+00' + interval '{seconds} seconds' $$"
    );
    api.world.database.execute(&sql).await;
}

const HOUR: u32 = 3_600;
const DAY: u32 = 24 * HOUR;

/// A start that was answered at second 0, and whose run has ended then.
async fn ended(api: &Api) -> (Ask, Answer) {
    stand_at(api, 0).await;
    let ask = Ask::start(&api.acme, &json!({ "input": 1 })).key(&fresh_key());
    let first = twice(&ask, 201).await;
    api.work().await;
    (ask, first)
}

/// R-C06, R-K11.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_kept_for_a_day_and_then_the_key_is_free() {
    let api = noops().await;
    let (ask, first) = ended(&api).await;
    for seconds in [1, HOUR, DAY - 2, DAY - 1] {
        stand_at(&api, seconds).await;
        replays(&ask.send().await, &first);
        assert_eq!(api.world.node.worker().sweep().await.unwrap(), 0);
        replays(&ask.send().await, &first);
    }
    stand_at(&api, DAY + 1).await;
    let second = twice(&ask, 201).await;
    assert_ne!(run_of(&second), run_of(&first));
    // A day of its own.
    stand_at(&api, 2 * DAY - 1).await;
    replays(&ask.send().await, &second);
    assert_eq!(runs(&api).await, [run_of(&second), run_of(&first)]);
}

/// R-C06: it does not matter whether anybody has swept; another request may have the key as well.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_time_is_over_stands_in_nobodys_way() {
    let api = noops().await;
    let (ask, _) = ended(&api).await;
    stand_at(&api, DAY + 1).await;
    let other = ask.clone().raw(JSON, r#"{"input":2}"#);
    let second = twice(&other, 201).await;
    ask.send().await.refused(409, "idempotency_key_mismatch");
    assert_eq!((records(&api).await, runs(&api).await.len()), (1, 2));
    replays(&other.send().await, &second);
}

/// R-C06, R-K11: an answer without a run, too.
#[tokio::test(flavor = "multi_thread")]
async fn the_time_can_be_made_longer_and_not_shorter() {
    let api = noops_with(|config| config.retention.request_keys_hours = 48).await;
    let (ask, first) = ended(&api).await;
    let putting = Ask::put(&api.acme, "/v1/secrets/a", &json!({ "value": "x" })).key(&fresh_key());
    let put = twice(&putting, 204).await;
    stand_at(&api, 2 * DAY - 1).await;
    api.world.node.worker().sweep().await.unwrap();
    replays(&ask.send().await, &first);
    replays(&putting.send().await, &put);
    stand_at(&api, 2 * DAY + 1).await;
    done(&ask.send().await, 201);
    done(&putting.send().await, 204);

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("deedbox.toml");
    std::fs::write(&file, "[retention]\nrequest_keys_hours = 23\n").unwrap();
    let refusal = Config::load(Some(&file)).unwrap_err().to_string();
    assert!(refusal.contains("retention.request_keys_hours") && refusal.contains("24"), "{refusal}");
}

/// F-A18: a caller who asks again while his run is alive never starts another, however long it takes.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_kept_while_its_run_is_alive() {
    let api = noops().await;
    stand_at(&api, 0).await;
    api.deploy("listen", json!({})).await;
    let input = json!({ "asks": [{ "wait": { "name": "go" } }] });
    let ask = Ask::post(&api.acme, "/v1/activities/listen/runs", &json!({ "input": input })).key(&fresh_key());
    let first = twice(&ask, 201).await;
    let run = run_of(&first);
    let told_again = async |seconds: u32| {
        stand_at(&api, seconds).await;
        api.world.node.worker().sweep().await.unwrap();
        replays(&ask.send().await, &first);
        ask.clone().lenient().send().await.expect(200);
    };
    told_again(10 * DAY).await;
    api.work().await;
    assert_eq!(api.run(&run).await["state"], "waiting");
    told_again(20 * DAY).await;
    api.acme.post(&format!("/v1/runs/{run}/pause"), &json!({})).await.expect(200);
    told_again(400 * DAY).await;
    api.acme.post(&format!("/v1/runs/{run}/cancel"), &json!({})).await.expect(200);
    // Its day was over long ago, and now its run is.
    let second = twice(&ask, 201).await;
    assert_ne!(run_of(&second), run);
}

/// R-C28: a key never leads to a run that is not there.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_goes_with_its_run() {
    let api = noops_with(|config| config.retention.request_keys_hours = 24 * 100).await;
    let (ask, first) = ended(&api).await;
    stand_at(&api, 29 * DAY).await;
    assert_eq!(api.world.node.worker().sweep().await.unwrap(), 0);
    replays(&ask.send().await, &first);
    stand_at(&api, 31 * DAY).await;
    assert_eq!(api.world.node.worker().sweep().await.unwrap(), 1);
    api.acme.get(first.header("location")).await.refused(404, "not_found");
    let lenient = ask.clone().lenient().send().await;
    assert_eq!(done(&lenient, 201)["deduplicated"], false);
    assert_ne!(run_of(&lenient), run_of(&first));
    assert_eq!(runs(&api).await, [run_of(&lenient)]);
}

/// R-C29: the sweep takes a thousand at a time, and only those whose time is over.
#[tokio::test(flavor = "multi_thread")]
async fn old_answers_are_swept_in_batches() {
    let api = noops().await;
    let (ended_ask, _) = ended(&api).await;
    let alive = Ask::start(&api.acme, &json!({ "input": 2, "delay": "300days" })).key(&fresh_key());
    let alive_first = twice(&alive, 201).await;
    let copies = "insert into request_keys
                  select k.tenant, decode(md5(n::text) || md5(n::text || 'x'), 'hex'), k.operation, k.digest, null,
                         k.status, k.location, k.body, k.sealed_with, k.answered_at
                  from request_keys k, generate_series(1, 2500) n
                  where k.run_id = (select run_id from runs where ended_at is not null)";
    api.world.database.execute(copies).await;
    let watch = "create table swept (rows bigint not null);
                 create function watch() returns trigger language plpgsql as $$
                 begin insert into swept select count(*) from gone; return null; end $$;
                 create trigger watch after delete on request_keys referencing old table as gone
                 for each statement execute function watch()";
    api.world.database.execute(watch).await;
    stand_at(&api, DAY - 1).await;
    api.world.node.worker().sweep().await.unwrap();
    assert_eq!(records(&api).await, 2_502, "nothing is old enough");
    stand_at(&api, DAY + 1).await;
    let young = Ask::start(&api.acme, &json!({ "input": 3 })).key(&fresh_key());
    let young_first = twice(&young, 201).await;
    api.world.node.worker().sweep().await.unwrap();
    assert_eq!(records(&api).await, 2);
    let database = &api.world.database;
    assert_eq!(count(database, "select coalesce(sum(rows), 0)::bigint from swept").await, 2_501);
    assert_eq!(count(database, "select max(rows) from swept").await, 1_000);
    replays(&alive.send().await, &alive_first);
    replays(&young.send().await, &young_first);
    done(&ended_ask.send().await, 201);
}
