//! Which answers are kept: those that are final. What a caller can put right, and what may come right by itself, is
//! tried again under the same key.

use super::super::GUESTS;
use super::*;
use crate::harness::component;

/// R-K15, R-K28: what is not there was not there.
#[tokio::test(flavor = "multi_thread")]
async fn a_final_refusal_is_told_again() {
    let api = noops().await;
    let key = fresh_key();
    let starting = Ask::post(&api.acme, "/v1/activities/print/runs", &json!({ "input": 1 })).key(&key);
    let first = starting.send().await;
    first.refused(404, "not_found");
    api.deploy("print", json!({})).await;
    let again = starting.send().await;
    replays(&again, &first);
    again.refused(404, "not_found");
    done(&starting.key(&fresh_key()).send().await, 201);

    let run = super::super::no_run();
    let cancelling = Ask::new(&api.acme, Method::POST, &format!("/v1/runs/{run}/cancel")).key(&key);
    let unknown = cancelling.send().await;
    unknown.refused(404, "not_found");
    replays(&cancelling.send().await, &unknown);
}

/// R-K15: a run that stood in the way then stands in the way for this request, also when it has gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_told_again_when_it_is_over() {
    let api = noops().await;
    let body = json!({ "run_name": "order-1", "reuse": "reject_alive" });
    let run = run_of(&Ask::start(&api.acme, &body).send().await);
    let starting = Ask::start(&api.acme, &body).key(&fresh_key());
    let refused = starting.send().await;
    assert_eq!(refused.refused(409, "run_already_active")["details"], json!({ "runId": run }));
    replays(&starting.send().await, &refused);
    api.work().await;
    replays(&starting.send().await, &refused);
    assert_eq!(runs(&api).await, [run.as_str()]);
    done(&starting.key(&fresh_key()).send().await, 201);
    let cancelling = Ask::new(&api.acme, Method::POST, &format!("/v1/runs/{run}/cancel")).key(&fresh_key());
    let terminal = cancelling.send().await;
    terminal.refused(409, "run_terminal");
    replays(&cancelling.send().await, &terminal);
}

/// R-C13, R-K17, F-A07: a body that is not right claims nothing, and the right one runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_corrected_request_runs_under_the_same_key() {
    let api = noops().await;
    let labels: serde_json::Map<String, Value> = (0..21).map(|n| (format!("l{n}"), json!("x"))).collect();
    for wrong in [
        json!({ "unheard-of": 1 }),
        json!({ "input": 1, "priority": 10 }),
        json!({ "input": 1, "delay": "400days" }),
        json!({ "input": 1, "start_at": "2999-01-01T00:00:00Z" }),
        json!({ "input": 1, "reuse": "allow" }),
        json!({ "input": 1, "retry": { "max_attempts": 0 } }),
        json!({ "input": 1, "labels": labels }),
        json!({ "input": 1, "signal": { "name": "a b" } }),
    ] {
        for lenient in [false, true] {
            let key = fresh_key();
            let starting = Ask::start(&api.acme, &wrong).key(&key);
            let starting = if lenient { starting.lenient() } else { starting };
            for _ in 0..2 {
                let refused = starting.send().await;
                refused.refused(400, "validation_error");
                assert!(!is_replay(&refused), "{refused:?}");
            }
            twice(&Ask::start(&api.acme, &json!({ "input": 1 })).key(&key), 201).await;
        }
    }
    assert_eq!((runs(&api).await.len(), records(&api).await), (16, 16));

    // What takes long to judge is judged before, too.
    let key = fresh_key();
    let upload =
        |bytes: Vec<u8>| Ask::new(&api.acme, Method::POST, "/v1/modules").raw("application/wasm", bytes).key(&key);
    for _ in 0..2 {
        let refused = upload(b"no component".to_vec()).send().await;
        refused.refused(400, "validation_error");
        assert!(!is_replay(&refused));
    }
    done(&upload(component(GUESTS)).send().await, 200);
    let deploying = |body: &Value| Ask::put(&api.acme, "/v1/activities/other", body).key(&key);
    deploying(&json!({ "module": super::super::no_hash() })).send().await.refused(400, "validation_error");
    let module = api.upload(GUESTS).await;
    twice(&deploying(&json!({ "module": module, "export": "noop" })), 201).await;
}

/// R-K17: who is not let in today may be let in tomorrow.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_is_not_let_in_leaves_nothing_behind() {
    let api = noops().await;
    let other = api.tenant("other").await;
    let starting = Ask::start(&api.acme, &json!({ "input": 1 })).key(&fresh_key());
    for stranger in [api.nobody(), api.acme.with_token("nonsense")] {
        for _ in 0..2 {
            let refused = starting.clone().by(&stranger).send().await;
            refused.refused(401, "unauthenticated");
            assert!(!is_replay(&refused));
        }
    }
    let tenants = Ask::post(&api.acme, "/v1/tenants", &json!({ "tenant": "mine" })).key(&fresh_key());
    let foreign = format!("/runs/acme~2F{}/cancel", super::super::no_run());
    let cancelling = Ask::post(&other, &foreign, &json!({})).key(&fresh_key());
    for (ask, code) in [(tenants, "forbidden"), (cancelling, "id_tenant_mismatch")] {
        for _ in 0..2 {
            let refused = ask.send().await;
            refused.refused(403, code);
            assert!(!is_replay(&refused), "{refused:?}");
        }
    }
    assert_eq!(records(&api).await, 0);
    twice(&starting, 201).await;
}

/// R-K16, R-C26, F-A20: a start that is refused because there is too much of something is as if it had not been asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_came_at_a_limit_runs_when_there_is_room() {
    let api = noops_with(|config| config.signals.max_unread = 1).await;
    let body = json!({ "run_name": "order-1", "reuse": "attach", "signal": { "name": "go" } });
    let run = run_of(&Ask::start(&api.acme, &body).send().await);
    let attaching = Ask::start(&api.acme, &body).key(&fresh_key());
    for _ in 0..3 {
        let full = attaching.send().await;
        full.refused(429, "rate_limited");
        assert!(!is_replay(&full) && !full.header("retry-after").is_empty(), "{full:?}");
    }
    assert_eq!(records(&api).await, 0);
    api.work().await;
    let first = twice(&attaching, 201).await;
    assert_ne!(run_of(&first), run);
    // A later final outcome is the record.
    api.work().await;
    replays(&attaching.send().await, &first);
}

/// R-K16, F-A20: the same at the tenant's own limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_of_a_tenant_at_its_limit_runs_when_there_is_room() {
    let api = noops().await;
    let admin = api.admin().await;
    let limits = |most: Value| Ask::put(&admin, "/v1/tenants/acme/limits", &json!({ "max_queued": most }));
    limits(json!(1)).send().await.expect(200);
    api.start("noop", json!("first")).await;
    let starting = Ask::start(&api.acme, &json!({ "input": "second" })).key(&fresh_key());
    for _ in 0..2 {
        let refused = starting.send().await;
        refused.refused(429, "rate_limited");
        assert!(!is_replay(&refused));
    }
    api.work().await;
    twice(&starting, 201).await;
}

/// R-K16, R-Z08, F-A07: a fault of ours is never an answer for good.
#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_server_is_tried_again() {
    let api = noops().await;
    let good: String = sqlx::query_scalar("select policy from activity_versions where activity = 'noop'")
        .fetch_one(&mut api.world.database.connect().await)
        .await
        .unwrap();
    let starting = Ask::start(&api.acme, &json!({ "input": 1 })).key(&fresh_key());
    api.world.database.execute("update activity_versions set policy = 'nonsense'").await;
    for _ in 0..2 {
        let fault = starting.send().await;
        fault.refused(500, "internal_error");
        assert!(!is_replay(&fault));
    }
    assert_eq!(records(&api).await, 0);
    sqlx::query("update activity_versions set policy = $1")
        .bind(good)
        .execute(&mut api.world.database.connect().await)
        .await
        .unwrap();
    twice(&starting, 201).await;
    assert_eq!(runs(&api).await.len(), 1);
}

/// R-C26, F-A20: when the last step fails, nothing of the first ones is left, the key included.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_whose_record_cannot_be_written_has_not_started() {
    let api = noops().await;
    let body = json!({ "run_name": "order-1", "labels": { "a": "b" }, "signal": { "name": "go" } });
    let starting = Ask::start(&api.acme, &body).key(&fresh_key());
    let refuse = "create function refuse() returns trigger language plpgsql as $$ begin raise 'no'; end $$;
                  create trigger refuse before insert on request_keys for each row execute function refuse()";
    api.world.database.execute(refuse).await;
    let failed = starting.send().await;
    assert!(failed.status >= 500, "{failed:?}");
    for table in ["runs", "run_names", "run_labels", "signals"] {
        let rows = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
        let left: i64 = sqlx::query_scalar(rows).fetch_one(&mut api.world.database.connect().await).await.unwrap();
        assert_eq!(left, 0, "{table}");
    }
    api.world.database.execute("drop trigger refuse on request_keys").await;
    twice(&starting, 201).await;
    assert_eq!(runs(&api).await.len(), 1);
}
