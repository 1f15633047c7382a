//! Open questions and provider profiles on the command line.

use deedbox_books::Behaviour;
use serde_json::json;

use super::program::{Up, component_file, order, place, provider};

#[tokio::test(flavor = "multi_thread")]
async fn an_open_question_is_listed_and_settled_and_the_run_goes_on() {
    let place = place();
    let (origin, books) = provider(place.path()).await;
    let up = Up::start(&place.path().join("d")).await;
    let policy = place.path().join("policy.toml");
    std::fs::write(&policy, format!("[egress]\nallow = [\"{origin}\"]\n[providers]\n\"{origin}\" = \"keyless\"\n"))
        .unwrap();
    let component = component_file(place.path(), "charge_once.wasm");
    up.run(&["deploy", &component, "--policy", policy.to_str().unwrap()]).await.well();
    assert!(up.run(&["effects", "list", "--escaped"]).await.well().contains("no open questions"));
    books.script(&[Behaviour::CutAfterApply]).await.unwrap();
    let run =
        up.ask(&["start", "charge-once", "--input", &order(&origin)]).await["run_id"].as_str().unwrap().to_owned();
    let open = up.until(&["effects", "list", "--escaped"], |list| list["items"][0].is_object()).await;
    let effect = open["items"][0]["effect_id"].as_str().unwrap().to_owned();
    let table = up.run(&["effects", "list", "--escaped"]).await.well();
    assert!(table.contains(&effect) && table.contains("keyless") && table.contains("/v1/charges"), "{table}");
    up.run(&["effects", "resolve", &effect, "--note", "x"]).await.failed(2);
    up.run(&["effects", "resolve", &effect, "--happened"]).await.failed(2);
    let early = up.run(&["effects", "resolve", &effect, "--did-not-happen", "--note", "x"]).await.failed(1);
    assert!(early.contains("may still arrive"), "{early}");
    let body = place.path().join("answer.json");
    std::fs::write(&body, r#"{"id":"ch_1"}"#).unwrap();
    let body = format!("@{}", body.display());
    let said = ["--happened", "--status", "201", "--body", &body, "--note", "seen in the dashboard", "--by", "ada"];
    let shown = up.run(&[&["effects", "resolve", &effect], &said[..]].concat()).await.well();
    assert!(shown.contains("completed") && shown.contains("ada") && shown.contains("seen in the dashboard"), "{shown}");
    let ended = up.until(&["runs", "show", &run], |run| run["state"] == "completed").await;
    assert_eq!(ended["output"]["charge_id"], "ch_1", "{ended}");
    assert_eq!(books.arrivals().await.unwrap().len(), 1);
    up.stop("TERM").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_put_shown_listed_and_removed() {
    let place = place();
    let up = Up::start(&place.path().join("d")).await;
    let file = place.path().join("mine.toml");
    std::fs::write(&file, "extends = \"stripe\"\nname = \"mine\"\nversion = \"7\"\nhosts = []\n").unwrap();
    let path = file.to_str().unwrap();
    assert!(up.run(&["provider", "put", path]).await.well().contains("provider mine is put"));
    let listed = up.ask(&["provider", "list"]).await;
    let mine = listed["items"].as_array().unwrap().iter().find(|provider| provider["name"] == "mine").unwrap();
    assert_eq!((&mine["own"], &mine["version"]), (&json!(true), &json!("7")));
    assert!(up.run(&["provider", "show", "mine"]).await.well().contains("Idempotency-Key"));
    assert!(up.run(&["provider"]).await.well().contains("docs.stripe.com"));
    std::fs::write(&file, "name = \"mine\"\nversion = \"8\"\nsource = \"x\"\ncolour = 1\n").unwrap();
    let refused = up.run(&["provider", "put", path]).await.failed(1);
    assert!(refused.contains("line 4") && refused.contains("colour"), "{refused}");
    up.run(&["provider", "rm", "mine"]).await.well();
    assert!(up.run(&["provider", "rm", "mine"]).await.failed(1).contains("no such provider"));
    up.stop("TERM").await;
}
