//! How attempts end that do not succeed: by the host, by the activity, by the SDK. The same codes and kinds in every language.

use deedbox_books::Behaviour;
use serde_json::{Value, json};

use super::stage::{Samples, Stage};
use crate::harness::cell::{Kind, logs};

/// F-J01, F-J02.
pub async fn ends(samples: Samples) {
    let stage = samples.stage(Kind::Keyed).await;
    let own = json!({ "code": "own-code", "message": "own words", "kind": "retryable" });
    let words = json!({ "words": "boom-42" });
    let spend = |kind: &str| json!({ "kind": kind });
    let stack = stage.language.stack;
    let cases: [(&str, Value, &[&str]); 5] = [
        ("spend", spend("loop"), &["timed-out"]),
        ("spend", spend("memory"), &["out-of-memory"]),
        ("spend", spend("stack"), stack),
        ("panic", words, &["trap"]),
        ("fail", own, &["own-code"]),
    ];
    for (activity, input, codes) in cases {
        let limit = if codes == ["timed-out"] { "1s" } else { "60s" };
        let retry = json!({ "max_attempts": 2, "initial_interval": "1ms", "jitter": "none" });
        stage.deploy(activity, &json!({ "retry": retry, "timeouts": { "start_to_close": limit } })).await;
        let run = stage.run(activity, input.clone()).await;
        let failure = stage.world.failure(run).await;
        assert!(codes.contains(&failure["code"].as_str().unwrap()), "{activity} {input}: {failure}");
        assert_eq!(failure["kind"], "retryable", "{failure}");
        assert_eq!(stage.world.outcomes(run).await.len(), 2, "{codes:?} is tried again");
        if activity == "panic" {
            assert!(failure["message"].as_str().unwrap().contains("boom-42"), "{failure}");
            let logs = logs(&stage.world, run).await;
            assert!(logs.iter().any(|log| log.stream == "stderr" && log.text.contains("boom-42")), "{logs:?}");
        }
    }
}

pub async fn told(samples: Samples) {
    let stage = samples.stage(Kind::Keyed).await;
    let details = json!({ "lines": [1, 2], "why": "☂" });
    let input =
        json!({ "code": "no-such-order", "message": "order 42 is not known", "kind": "permanent", "details": details });
    let run = stage.run("fail", input).await;
    let failure = stage.world.failure(run).await;
    assert_eq!(
        (&failure["code"], &failure["message"], &failure["kind"]),
        (&json!("no-such-order"), &json!("order 42 is not known"), &json!("permanent"))
    );
    assert_eq!(failure["details"], details, "{failure}");
    assert_eq!(stage.world.outcomes(run).await, ["failed"], "a permanent one is not tried again");

    stage.deploy("fail", &json!({ "retry": { "max_attempts": 2, "initial_interval": "1ms", "jitter": "none" } })).await;
    let input = json!({ "code": "busy", "message": "later", "kind": "retryable", "retry_after_ms": 400 });
    let run = stage.run("fail", input).await;
    assert_eq!(stage.world.failure(run).await["code"], "busy");
    let attempts = stage.world.attempts(run).await;
    let pause = attempts[1].started_at - attempts[0].ended_at.unwrap();
    assert!(pause.num_milliseconds() >= 400, "{pause}");
}

pub async fn statuses(samples: Samples) {
    let stage = samples.stage(Kind::Keyed).await;
    let retry = json!({ "max_attempts": 2, "initial_interval": "1ms", "jitter": "none" });
    stage.deploy("charge-once", &json!({ "retry": retry })).await;
    let input = json!({ "provider_url": stage.world.origin(), "order": "42", "amount_cents": 1, "customer": "c" });
    for (status, kind, attempts) in
        [(401, "permanent", 1), (408, "retryable", 2), (500, "retryable", 2), (503, "retryable", 2)]
    {
        let refuse = Behaviour::StatusBeforeApply { status, retry_after: None, body: None };
        stage.world.script(&vec![refuse; attempts]).await;
        let run = stage.run("charge-once", input.clone()).await;
        let failure = stage.world.failure(run).await;
        assert_eq!((&failure["code"], &failure["kind"]), (&json!("http-status"), &json!(kind)), "{status}: {failure}");
        assert!(failure["message"].as_str().unwrap().contains(&status.to_string()), "{failure}");
        assert_eq!(stage.world.outcomes(run).await.len(), attempts, "{status}");
    }
    denied(&stage, input).await;
}

/// The words of the host come through.
async fn denied(stage: &Stage, mut input: Value) {
    input["provider_url"] = json!("http://elsewhere.test");
    let run = stage.run("charge-once", input).await;
    let failure = stage.world.failure(run).await;
    assert_eq!((&failure["code"], &failure["kind"]), (&json!("denied"), &json!("permanent")), "{failure}");
    assert!(failure["message"].as_str().unwrap().contains("policy.egress.allow"), "{failure}");
}

/// F-J04.
pub async fn inputs(samples: Samples) {
    let stage = samples.stage(Kind::Keyed).await;
    let whole = json!({ "nested": { "list": ["x", "y"] }, "c": true, "b": "text", "a": -7 });
    let run = stage.run("echo", whole.clone()).await;
    assert_eq!(stage.world.output(run).await, whole);
    let run = stage.run("echo", json!({ "b": "", "a": 1 })).await;
    let mut output = stage.world.output(run).await;
    // A member that is not there and one that is null are the same to an optional one.
    output.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    assert_eq!(output, json!({ "a": 1, "b": "" }));

    for (input, named) in [
        (json!({ "a": 1 }), "b"),
        (json!({ "b": "x" }), "a"),
        (json!({ "a": 1, "b": "x", "surplus": 1 }), "surplus"),
        (json!({ "a": "one", "b": "x" }), "a"),
        (json!({ "a": 1, "b": "x", "nested": { "list": ["x", 3] } }), "list"),
    ] {
        let run = stage.run("echo", input.clone()).await;
        let failure = stage.world.failure(run).await;
        assert_eq!(
            (&failure["code"], &failure["kind"]),
            (&json!("invalid-input"), &json!("permanent")),
            "{input}: {failure}"
        );
        assert!(names(failure["message"].as_str().unwrap(), named), "{input}: {failure}");
    }
}

/// Whether a message has that word by itself.
fn names(message: &str, word: &str) -> bool {
    message.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|part| part == word)
}
