//! One message: what it says, and how it is tried until it has arrived.

use deedbox_books::Behaviour;
use serde_json::{Value, json};

use super::{KEY, Stage, secret, signature};
use crate::api::client::assert_members;
use crate::harness::logs;
use crate::harness::raw::serve_once;

const fn status(status: u16) -> Behaviour {
    Behaviour::StatusBeforeApply { status, retry_after: None, body: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_tells_of_its_end_once_and_signed() {
    let stage = Stage::new().await;
    stage.deploy("noop").await;
    let callback = json!({ "url": stage.url(), "secret": "webhook" });
    let body = json!({ "input": [1, 2], "run_name": "order-7", "labels": { "shop": "berlin" }, "callback": callback });
    let run = stage.asked("noop", &body).await.expect(201)["run_id"].as_str().unwrap().to_owned();
    let pending = stage.callback(&run).await;
    assert_members(
        &pending,
        &[
            "run_id",
            "url",
            "secret",
            "state",
            "webhook_id",
            "tries",
            "next_at",
            "last_status",
            "last_error",
            "delivered_at",
        ],
    );
    assert_eq!(
        (&pending["state"], &pending["webhook_id"], &pending["tries"]),
        (&json!("pending"), &Value::Null, &json!(0))
    );
    assert_eq!((&pending["url"], &pending["secret"]), (&json!(stage.url()), &json!("webhook")));

    stage.api.work().await;
    let delivered = stage.settled(&run).await;
    assert_eq!((&delivered["state"], &delivered["tries"]), (&json!("delivered"), &json!(1)), "{delivered}");
    assert_eq!((&delivered["last_status"], &delivered["last_error"]), (&json!(201), &Value::Null));
    assert_eq!((&delivered["next_at"], delivered["delivered_at"].is_string()), (&Value::Null, true));
    for _ in 0..3 {
        stage.try_once().await;
    }
    let told = stage.told().await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(delivered["webhook_id"], json!(told[0].id));
    assert!(told[0].id.starts_with("msg_") && !told[0].id.contains('.'), "{told:?}");
    let ended = stage.api.run(&run).await["ended_at"].clone();
    assert_eq!(
        told[0].body,
        json!({ "type": "run.completed", "timestamp": ended, "data": {
            "run_id": run, "activity": "noop", "version": 1, "state": "completed", "run_name": "order-7",
            "labels": { "shop": "berlin" }, "ended_at": ended, "output": [1, 2] } })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_tried_under_one_id_until_it_is_taken() {
    let stage = Stage::with(|settings| settings.webhooks.max_pause_ms = 10_000).await;
    stage.deploy("noop").await;
    let run = stage.start("noop", json!(1)).await;
    let later = Behaviour::StatusBeforeApply { status: 503, retry_after: Some(1), body: None };
    stage.api.world.script(&[status(500), Behaviour::CutBeforeApply, later]).await;
    stage.api.work().await;
    let delivered = stage.settled(&run).await;
    assert_eq!((&delivered["state"], &delivered["tries"]), (&json!("delivered"), &json!(4)), "{delivered}");
    let told = stage.told().await;
    assert_eq!(told.len(), 4, "{told:?}");
    for again in &told[1..] {
        assert_eq!((&again.id, &again.body), (&told[0].id, &told[0].body));
    }
    // The receiver asked for a second, and each try has its own time.
    assert!(told[3].timestamp > told[2].timestamp, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone_for_good_is_told_no_more() {
    let stage = Stage::new().await;
    stage.deploy("noop").await;
    let run = stage.start("noop", json!(1)).await;
    stage.api.world.script(&[status(410)]).await;
    stage.api.work().await;
    let failed = stage.settled(&run).await;
    assert_eq!((&failed["state"], &failed["tries"]), (&json!("failed"), &json!(1)), "{failed}");
    assert_eq!((&failed["last_status"], &failed["next_at"]), (&json!(410), &Value::Null));
    assert_eq!(stage.told().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_ends_the_try_and_is_tried_again() {
    let stage = Stage::with(|settings| settings.webhooks.send_ms = 300).await;
    stage.deploy("noop").await;
    let run = stage.start("noop", json!(1)).await;
    stage.api.world.script(&[Behaviour::HoldBeforeApply]).await;
    stage.api.work().await;
    stage.try_once().await;
    let due = stage.callback(&run).await;
    assert_eq!((&due["state"], &due["tries"], &due["last_status"]), (&json!("due"), &json!(1), &Value::Null), "{due}");
    assert!(due["last_error"].as_str().unwrap().contains("in time") && due["next_at"].is_string(), "{due}");
    assert_eq!(stage.settled(&run).await["state"], "delivered");
    assert_eq!(stage.told().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_given_up_when_its_time_is_over_and_goes_out_again_when_asked_for() {
    let stage = Stage::new().await;
    stage.deploy("noop").await;
    let run = stage.start("noop", json!(1)).await;
    stage.api.world.script(&[status(500), status(500)]).await;
    stage.api.work().await;
    stage.try_once().await;
    assert_eq!(stage.callback(&run).await["state"], "due");
    stage.api.world.database.advance_seconds(72 * 3600).await;
    let failed = stage.settled(&run).await;
    assert_eq!((&failed["state"], &failed["last_error"]), (&json!("failed"), &json!("answered 500")), "{failed}");
    let again = stage.redeliver(&run).await.expect(202);
    assert_eq!((&again["state"], &again["tries"], &again["last_error"]), (&json!("due"), &json!(0), &Value::Null));
    assert_eq!(stage.settled(&run).await["state"], "delivered");
    let told = stage.told().await;
    assert_eq!(told.iter().map(|told| &told.id).collect::<Vec<_>>(), [&told[0].id; 3]);
    // One that has arrived goes out again as well.
    stage.redeliver(&run).await.expect(202);
    assert_eq!(stage.settled(&run).await["state"], "delivered");
    assert_eq!(stage.told().await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let stage = Stage::new().await;
    let canary = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let elsewhere = format!("http://{}", canary.local_addr().unwrap());
    let answer = format!("HTTP/1.1 307 Moved\r\nlocation: {elsewhere}/x\r\ncontent-length: 0\r\n\r\n");
    let origin = format!("http://{}", serve_once(answer).await);
    // It would be allowed to go there.
    stage.api.deploy("noop", json!({ "egress": { "allow": [origin, elsewhere] } })).await;
    let answer = stage.asked("noop", &json!({ "callback": { "url": origin } })).await;
    let run = answer.expect(201)["run_id"].as_str().unwrap().to_owned();
    stage.api.work().await;
    stage.try_once().await;
    let due = stage.callback(&run).await;
    assert_eq!((&due["state"], &due["last_status"]), (&json!("due"), &json!(307)), "{due}");
    assert!(due["last_error"].as_str().unwrap().contains("redirect"), "{due}");
    assert_eq!(canary.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "it was followed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_make_a_message_too_large_is_left_out() {
    let stage = Stage::with(|settings| settings.webhooks.max_body_bytes = 2_000).await;
    stage.deploy("big-output").await;
    for (bytes, omitted) in [(100, false), (1_900, true), (100_000, true)] {
        let run = stage.start("big-output", json!({ "bytes": bytes })).await;
        stage.api.work().await;
        assert_eq!(stage.settled(&run).await["state"], "delivered");
        let told = stage.told().await;
        let data = &told.last().unwrap().body["data"];
        assert_eq!(
            (data.get("output").is_none(), data["output_omitted"] == json!(true)),
            (omitted, omitted),
            "{bytes}"
        );
        assert_eq!(stage.api.run(&run).await["output"].as_str().unwrap().len(), bytes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_taken_away_holds_the_message_back_and_one_that_is_replaced_signs_it_twice() {
    let stage = Stage::new().await;
    stage.deploy("noop").await;
    let run = stage.start("noop", json!(1)).await;
    stage.api.work().await;
    stage.api.acme.delete("/v1/secrets/webhook").await.expect(204);
    stage.try_once().await;
    let due = stage.callback(&run).await;
    assert_eq!((&due["state"], &due["tries"], &due["last_status"]), (&json!("due"), &json!(1), &Value::Null), "{due}");
    assert!(due["last_error"].as_str().unwrap().contains("deedbox secret set webhook"), "{due}");
    assert!(stage.told().await.is_empty());
    let new = [7; 24];
    stage.put_secret("webhook", &format!("{} {}", secret(&new), secret(KEY))).await;
    assert_eq!(stage.settled(&run).await["state"], "delivered");
    let arrival = &stage.api.world.books.arrivals().await.unwrap()[0];
    let both = format!("{} {}", signature(&new, arrival), signature(KEY, arrival));
    assert_eq!(arrival.header("webhook-signature"), Some(both.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_the_secret_is_in_a_log_an_answer_or_a_table() {
    logs::keep();
    let stage = Stage::new().await;
    stage.deploy("noop").await;
    let run = stage.start("noop", json!(1)).await;
    stage.api.world.script(&[Behaviour::Echo, status(500)]).await;
    stage.api.work().await;
    stage.settled(&run).await;
    stage.redeliver(&run).await.expect(202);
    stage.settled(&run).await;
    let rows: String = sqlx::query_scalar("select jsonb_agg(to_jsonb(c))::text from callbacks c")
        .fetch_one(&mut stage.api.world.database.connect().await)
        .await
        .unwrap();
    let all = [logs::all(), stage.callback(&run).await.to_string(), rows].concat();
    for trace in [secret(KEY).replace("whsec_", ""), String::from_utf8_lossy(KEY).into_owned()] {
        assert!(!all.contains(&trace), "the secret is shown");
    }
    assert!(all.contains(&run), "something was written down");
}
