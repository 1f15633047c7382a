//! Labels: what owners write on their runs to find them again. They are shown as they were written, and found by their
//! very values.

use serde_json::{Map, Value, json};

use super::super::client::whole_list;
use super::{Api, run_of, start};

async fn labelled(api: &Api, labels: Value) -> super::Answer {
    start(&api.acme, "noop", &json!({ "input": 1, "labels": labels })).await
}

async fn found(api: &Api, query: &str) -> Vec<String> {
    let listed = whole_list(&api.acme.get(&format!("/v1/runs?{query}")).await);
    listed.iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_found_by_a_label_and_its_value() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let first = run_of(&labelled(&api, json!({ "customer": "42", "kind": "a:b c" })).await);
    let second = run_of(&labelled(&api, json!({ "customer": "42", "kind": "" })).await);
    let third = run_of(&labelled(&api, json!({ "customer": "43" })).await);
    api.start("noop", json!(1)).await;
    assert_eq!(api.run(&first).await["labels"], json!({ "customer": "42", "kind": "a:b c" }));
    assert_eq!(found(&api, "label=customer:42").await, [second.clone(), first.clone()]);
    assert_eq!(found(&api, "label=customer:43").await, std::slice::from_ref(&third));
    assert_eq!(found(&api, "label=kind:a:b%20c").await, std::slice::from_ref(&first), "a value may have colons");
    assert_eq!(found(&api, "label=kind:").await, std::slice::from_ref(&second));
    for none in ["label=customer:4", "label=customer:", "label=42:customer", "label=kind:a:b%20c&activity=print"] {
        assert!(found(&api, none).await.is_empty(), "{none}");
    }
    api.work().await;
    assert_eq!(found(&api, "label=customer:42&state=completed").await, [second, first]);
    for query in ["label=customer", "label=", "label=a%20b:x", "label=:x"] {
        api.acme.get(&format!("/v1/runs?{query}")).await.refused(400, "validation_error");
    }
    let other = api.tenant("other").await;
    assert!(whole_list(&other.get("/v1/runs?label=customer:43").await).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_few_short_and_printable() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let many = |count: usize| -> Value {
        (0..count).map(|n| (format!("label-{n}"), json!("x"))).collect::<Map<String, Value>>().into()
    };
    let wrong = [
        many(21),
        json!({ "a b": "x" }),
        json!({ "": "x" }),
        json!({ "a".repeat(129): "x" }),
        json!({ "a": "x".repeat(257) }),
        json!({ "a": "x\ny" }),
        json!({ "a": "x\0y" }),
        json!({ "a": 1 }),
        json!({ "a": null }),
        json!(["a"]),
        json!("a:x"),
    ];
    for labels in wrong {
        labelled(&api, labels).await.refused(400, "validation_error");
    }
    assert!(found(&api, "limit=50").await.is_empty());
    for labels in [many(20), json!({ "a".repeat(128): "x".repeat(256) }), json!({}), json!({ "a": "ä" })] {
        let run = run_of(&labelled(&api, labels.clone()).await);
        assert_eq!(api.run(&run).await["labels"], labels);
    }
}
