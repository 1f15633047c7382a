//! The samples that do not call a provider for a change: files, messages, logs.

use serde_json::json;

use super::stage::{Samples, orders};
use crate::harness::cell::{Kind, logs};

/// What the file of [`CSV`](super::stage::CSV) comes to.
pub const SUMMARY: &str = "rows,total_cents\n3,1200\n";

pub async fn file(samples: Samples) {
    let stage = samples.stage(Kind::Keyed).await;
    let source = format!("{}/orders.csv", stage.source);
    let run = stage.run("import-csv", json!({ "source_url": source, "path": "exports/a.csv" })).await;
    assert_eq!(stage.world.output(run).await, json!({ "rows": 3, "total_cents": 1200 }));
    assert_eq!((stage.file("a.csv").as_str(), stage.files().len()), (SUMMARY, 1));
    let [effect] = <[_; 1]>::try_from(stage.effects(run).await).unwrap();
    assert_eq!((effect.method.as_str(), effect.url.as_str()), ("WRITE", "file:///exports/a.csv"));
    assert_eq!((effect.identity.as_str(), effect.state.as_str()), ("summary", "completed"));

    // The second row below the header is no amount.
    let bad = crate::harness::raw::serve_text("name,amount_cents\nada,1\ngrace,much\n").await;
    stage.deploy("import-csv", &json!({ "egress": { "allow": [format!("http://{bad}")] } })).await;
    let input = json!({ "source_url": format!("http://{bad}/"), "path": "exports/b.csv" });
    let run = stage.run("import-csv", input).await;
    let failure = stage.world.failure(run).await;
    assert_eq!((&failure["code"], &failure["kind"]), (&json!("bad-csv"), &json!("permanent")), "{failure}");
    assert!(failure["message"].as_str().unwrap().contains('3'), "it names the line: {failure}");
    assert_eq!((stage.files().len(), stage.effects(run).await.len()), (1, 0));
}

pub async fn message(samples: Samples) {
    let stage = samples.stage_with(Kind::Keyed, Some(orders().await), json!({})).await;
    let run = stage.run("publish", json!({ "subject": "orders.paid", "text": "paid 42 ☂" })).await;
    assert_eq!(stage.world.output(run).await, json!({ "stream": "ORDERS", "sequence": 1 }));
    let [kept] = <[_; 1]>::try_from(stage.nats().kept("ORDERS").await).unwrap();
    assert_eq!((kept.subject.as_str(), kept.payload.as_str()), ("orders.paid", "paid 42 ☂"));
    let [effect] = <[_; 1]>::try_from(stage.effects(run).await).unwrap();
    assert_eq!((effect.method.as_str(), effect.identity.as_str()), ("PUBLISH", "note"));
    assert_eq!((effect.state.as_str(), effect.wire_key), ("completed", kept.id));
}

pub async fn logged(samples: Samples) {
    let stage = samples.stage(Kind::Keyed).await;
    let run = stage.run("log", json!({ "words": "words-77" })).await;
    assert_eq!(stage.world.run(run).await.state, "completed");
    let logs = logs(&stage.world, run).await;
    let lines: Vec<&str> =
        logs.iter().flat_map(|log| log.text.lines()).filter(|line| line.contains("words-77")).collect();
    assert_eq!(lines.len(), stage.language.levels + 1, "a line for each level, and what was printed: {logs:?}");
    assert!(logs.iter().any(|log| log.stream == "stdout" && log.text.contains("words-77")), "{logs:?}");
}
