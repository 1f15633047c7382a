//! What a guest gives back: results, failures, prints, and answers of providers that no text column can hold as they are.

use deedbox::store::{self, log::Log};
use deedbox_books::Options;
use serde_json::{Value, json};

use super::world_with;
use crate::harness::raw::serve_once;
use crate::harness::{TENANT, World, config};

const CAP: usize = 256 << 10;

async fn logs(world: &World, run: uuid::Uuid) -> Vec<Log> {
    store::log::list(world.node.store(), TENANT, run, None, 1_000).await.unwrap()
}

/// F-F11.
#[tokio::test(flavor = "multi_thread")]
async fn prints_beyond_the_cap_are_dropped_and_marked() {
    let world = World::keyed().await;
    world.deploy("print", "stripe", json!({ "timeouts": { "start_to_close": "60s" } })).await;
    // Many small writes, few huge ones, and in all more than one host call may hand over.
    for (lines, bytes) in [(20_000, 63), (2, 10 << 20), (6_000, 4_000)] {
        for stream in ["stdout", "stderr"] {
            let input = json!({ "lines": lines, "bytes": bytes, "stderr": stream == "stderr" });
            let run = world.start("print", input).await;
            world.work().await;
            assert_eq!(world.output(run).await, json!(lines), "every line could be written");
            let logs = logs(&world, run).await;
            assert_eq!(logs.len(), 1);
            assert_eq!((logs[0].stream.as_str(), logs[0].text.len(), logs[0].truncated), (stream, CAP, true));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prints_up_to_the_cap_are_kept_whole() {
    let world = World::keyed().await;
    world.deploy("print", "stripe", json!({})).await;
    let exact = world.start("print", json!({ "lines": CAP / 64, "bytes": 63 })).await;
    let none = world.start("print", json!({ "lines": 0, "bytes": 1 })).await;
    world.work().await;
    let kept = logs(&world, exact).await;
    assert_eq!((kept[0].text.len(), kept[0].truncated), (CAP, false));
    assert!(logs(&world, none).await.is_empty());
}

/// R-D39, F-B15.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_too_large_ends_the_run_at_once() {
    let mut config = config();
    config.host.max_output_bytes = 100;
    let world = World::with(Options { keyless: false, convention: None }, config).await;
    world.deploy("send", "stripe", json!({ "retry": { "max_attempts": 5 } })).await;
    let run = world.start("send", json!({ "calls": [{ "method": "POST", "url": world.charges() }] })).await;
    world.work().await;
    let failure = world.failure(run).await;
    assert_eq!((&failure["code"], &failure["kind"]), (&json!("result-too-large"), &json!("permanent")));
    assert!(failure["message"].as_str().unwrap().contains("the limit is 100"), "{failure}");
    assert_eq!(world.outcomes(run).await, ["failed"]);
    assert_eq!(world.books.arrivals().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_a_result_is_exact() {
    let world = world_with(|config| config.host.max_output_bytes = 1_000).await;
    world.deploy("big-output", "stripe", json!({})).await;
    // The JSON text has two quotation marks more.
    let fits = world.start("big-output", json!({ "bytes": 998 })).await;
    let beyond = world.start("big-output", json!({ "bytes": 999 })).await;
    world.work().await;
    assert_eq!(world.output(fits).await.as_str().unwrap().len(), 998);
    assert_eq!(world.failure(beyond).await["code"], "result-too-large");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_failure_is_cut_and_kept() {
    let world = World::keyed().await;
    world.deploy("big-failure", "stripe", json!({})).await;
    let run = world.start("big-failure", json!({ "bytes": 1 << 20 })).await;
    world.work().await;
    let failure = world.failure(run).await;
    assert_eq!(failure["code"], "big");
    assert_eq!(failure["message"].as_str().unwrap().len(), 8 << 10);
    assert_eq!(world.outcomes(run).await, ["failed"]);
}

/// F-B16.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_no_json_text_is_refused_once() {
    let world = World::keyed().await;
    world.deploy("raw-output", "stripe", json!({ "retry": { "max_attempts": 5 } })).await;
    let deep = "[".repeat(10_000);
    let bad = ["not json", "", "\"\\ud800\"", "\0", "\"a\0b\"", "NaN", "{} {}", "\u{feff}1", &deep];
    for text in bad {
        let run = world.start("raw-output", json!({ "text": text })).await;
        world.work().await;
        let failure = world.failure(run).await;
        assert_eq!((&failure["code"], &failure["kind"]), (&json!("invalid-output"), &json!("permanent")), "{text:?}");
        assert_eq!(world.outcomes(run).await, ["failed"], "{text:?}");
    }
    for text in ["\"a\\u0000b\"", " [1] ", "\"\u{10ffff}\"", "9007199254740993", "1e400"] {
        let run = world.start("raw-output", json!({ "text": text })).await;
        world.work().await;
        let ended = world.run(run).await;
        assert!(ended.ended_at.is_some() && ended.attempts == 1, "{text:?}: {ended:?}");
        if ended.state == "completed" {
            assert_eq!(ended.output.unwrap(), text);
        }
    }
}

/// F-B16.
#[tokio::test(flavor = "multi_thread")]
async fn nul_in_results_and_failures_is_stored_and_not_run_again() {
    let world = World::keyed().await;
    world.deploy("nul-output", "stripe", json!({ "retry": { "max_attempts": 5 } })).await;
    let result = world.start("nul-output", json!({})).await;
    let failure = world.start("nul-output", json!({ "failure": true })).await;
    world.work().await;
    assert_eq!(world.output(result).await, json!({ "text": "a\0b" }));
    let told = world.failure(failure).await;
    assert_eq!((&told["code"], &told["message"]), (&json!("nul\u{fffd}code"), &json!("a\u{fffd}b")));
    assert_eq!(told["details"], json!({ "text": "a\0b" }));
    assert_eq!(world.outcomes(failure).await, ["failed"]);
}

/// F-B16.
#[tokio::test(flavor = "multi_thread")]
async fn nul_in_a_log_is_shown_as_a_replacement() {
    let world = World::keyed().await;
    world.deploy("noop", "stripe", json!({})).await;
    let run = world.start("noop", json!({})).await;
    let leased = crate::harness::lease(world.node.store(), "test", 1, 60_000).await.remove(0);
    let log = Log { attempt: 1, stream: "stdout".to_owned(), text: "a\0b".to_owned(), truncated: false };
    store::log::append(world.node.store(), TENANT, run, leased.token, &log).await.unwrap();
    assert_eq!(logs(&world, run).await[0].text, "a\u{fffd}b");
}

/// F-B16.
#[tokio::test(flavor = "multi_thread")]
async fn prints_that_are_no_text_are_kept_with_replacements() {
    let world = World::keyed().await;
    world.deploy("print", "stripe", json!({})).await;
    for stream in ["stdout", "stderr"] {
        let run =
            world.start("print", json!({ "raw": b"a\0b\xff\xfe\xed\xa0\x80c", "stderr": stream == "stderr" })).await;
        world.work().await;
        assert_eq!(world.outcomes(run).await, ["completed"]);
        let kept = logs(&world, run).await;
        let text = kept[0].text.as_str();
        assert_eq!((kept.len(), kept[0].stream.as_str()), (1, stream));
        assert!(text.starts_with("a\u{fffd}b\u{fffd}") && text.ends_with("\u{fffd}c"), "{text:?}");
    }
}

/// F-B16. The bytes of an answer come to the guest as they are, at once and from the record.
#[tokio::test(flavor = "multi_thread")]
async fn odd_bytes_in_an_answer_are_recorded_and_replayed() {
    let world = World::keyed().await;
    let answers = [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\na\0b\xff\xfe"[..],
        b"HTTP/1.1 200 OK\r\netag: \"\xff\xfe\x80\"\r\nrequest-id: \xed\xa0\x80\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n{\"a\": \"\\u0000\" }",
    ];
    for answer in answers {
        let address = serve_once(answer).await;
        let origin = format!("http://{address}");
        world.deploy("send", "stripe", odd_policy(&origin)).await;
        let input = json!({ "calls": [{ "method": "POST", "url": origin }], "then": ["fail", "return"] });
        let run = world.start("send", input).await;
        world.work().await;
        assert_eq!(world.outcomes(run).await, ["failed", "completed"]);
        let output = world.output(run).await;
        assert_eq!(output[0]["source"], "replayed");
        assert_eq!(output[0]["body"], String::from_utf8_lossy(body_of(answer)).as_ref());
        assert_eq!(world.sends(run).await.len(), 1);
    }
}

/// F-B16. A header that HTTP forbids is no answer at all: the outcome is unknown, and the run waits for a person.
#[tokio::test(flavor = "multi_thread")]
async fn nul_in_the_header_of_an_answer_is_an_unknown_outcome() {
    let world = World::keyed().await;
    let origin = format!("http://{}", serve_once(b"HTTP/1.1 200 OK\r\netag: a\0b\r\ncontent-length: 0\r\n\r\n").await);
    let mut policy = odd_policy(&origin);
    policy["providers"] = json!({});
    world.deploy("send", "stripe", policy).await;
    let run = world.start("send", json!({ "calls": [{ "method": "POST", "url": origin }] })).await;
    world.work().await;
    assert_eq!(world.outcomes(run).await, ["suspended"]);
    assert_eq!(world.run(run).await.state, "waiting");
    assert_eq!(world.sends(run).await[0].state, "escaped");
}

fn odd_policy(origin: &str) -> Value {
    json!({ "egress": { "allow": [origin] }, "providers": { origin: "stripe" } })
}

fn body_of(answer: &[u8]) -> &[u8] {
    let at = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    &answer[at + 4..]
}
