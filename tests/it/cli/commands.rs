//! The commands against a machine of one's own, in text for people and in JSON for programs.

use serde_json::{Value, json};

use super::program::{Up, component_file, deedbox, finish, finish_with, order, place, provider};

const CREDENTIAL: &str = "sk_canary_of_the_command_line";

fn policy(origin: &str) -> String {
    format!(
        "[egress]\nallow = [\"{origin}\"]\n[providers]\n\"{origin}\" = \"stripe\"\n\
         [credentials.stripe]\nsecret = \"key\"\naccount = \"main\"\n[retry]\nmax_attempts = 1\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_is_deployed_started_and_looked_at() {
    let place = place();
    let (origin, books) = provider(place.path()).await;
    let up = Up::start(&place.path().join("d")).await;
    let component = component_file(place.path(), "charge_once.wasm");
    let policy_file = place.path().join("policy.toml");
    std::fs::write(&policy_file, policy(&origin)).unwrap();
    manage_secrets(&up).await;
    let deployed = up.ask(&["deploy", &component, "--policy", policy_file.to_str().unwrap()]).await;
    assert_eq!(deployed["activities"][0]["activity"], "charge-once");
    assert_eq!(deployed["activities"][0]["policy"]["credentials"]["stripe"]["account"], "main");
    let named = up.run(&["deploy", &component, "--name", "charge"]).await;
    assert!(named.err.contains("deployed charge version 1"), "{named:?}");
    assert!(named.well().contains("deedbox start charge"));

    let started = up.run(&["start", "charge-once", "--input", &order(&origin), "--wait"]).await;
    assert!(started.out.contains("is completed after 1 of 1 attempts"), "{started:?}");
    assert!(started.well().contains("\"charge_id\": \"ch_1\""));
    let file = place.path().join("order.json");
    std::fs::write(&file, order(&origin)).unwrap();
    let ended = up.ask(&["start", "charge-once", "--wait", "--input", &format!("@{}", file.display())]).await;
    assert_eq!((&ended["state"], &ended["output"]["charge_id"]), (&json!("completed"), &json!("ch_2")));
    let piped = up.command(&["--json", "start", "charge-once", "--wait", "--input", "@-"]);
    assert_eq!(finish_with(piped, &order(&origin)).await.json()["output"]["charge_id"], "ch_3");
    let arrivals = books.arrivals().await.unwrap();
    assert!(arrivals.iter().all(|a| a.header("authorization") == Some(&*format!("Bearer {CREDENTIAL}"))));

    look_at_runs(&up, ended["run_id"].as_str().unwrap()).await;
    look_at_effects(&up, ended["run_id"].as_str().unwrap()).await;
    fail_in_every_way(&up, &component).await;
    start_once(&up, &order(&origin)).await;
    let ended = up.stop("TERM").await;
    assert!(!ended.err.contains(CREDENTIAL));
}

async fn start_once(up: &Up, input: &str) {
    let start = ["start", "charge-once", "--input", input, "--idempotency-key", "cli-0123456789-0123456789"];
    let (first, again) = (up.ask(&start).await, up.ask(&start).await);
    assert_eq!((&first["started_fresh"], &first), (&json!(true), &again));
    let words = up.run(&["start", "charge-once", "--input", input, "--idempotency-key", "short"]).await.failed(1);
    assert!(words.contains("22 to 128"), "{words}");
}

async fn manage_secrets(up: &Up) {
    let set = finish_with(up.command(&["secret", "set", "key"]), &format!("{CREDENTIAL}\n")).await;
    assert!(!set.out.contains(CREDENTIAL) && !set.err.contains(CREDENTIAL));
    assert_eq!(set.well(), "secret key is set\n");
    let from = up.data_dir.with_extension("secret");
    std::fs::write(&from, "other").unwrap();
    up.run(&["secret", "set", "other", "--from-file", from.to_str().unwrap()]).await.well();
    let listed = up.ask(&["secret", "list"]).await;
    let names: Vec<&str> = listed["items"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["key", "other"]);
    let text = up.run(&["secret", "list"]).await.well();
    assert!(text.contains("key") && !text.contains(CREDENTIAL), "{text}");
    up.run(&["secret", "rm", "other"]).await.well();
    assert!(up.run(&["secret", "rm", "other"]).await.failed(1).contains("no such secret"));
    assert_eq!(up.ask(&["secret", "list"]).await["items"].as_array().unwrap().len(), 1);
    finish_with(up.command(&["secret", "set", "empty"]), "\n").await.failed(2);
}

async fn look_at_runs(up: &Up, run: &str) {
    let listed = up.ask(&["runs", "list", "--state", "completed", "--limit", "2"]).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    let rest = up.ask(&["runs", "list", "--limit", "2", "--after", listed["after"].as_str().unwrap()]).await;
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["after"]), (1, &Value::Null));
    let table = up.run(&["runs"]).await.well();
    assert!(table.contains(run) && table.contains("charge-once v1") && table.contains("completed"), "{table}");
    assert_eq!(up.ask(&["runs", "show", run]).await["output"]["outcome"], "charged");
    let shown = up.run(&["runs", "show", run]).await.well();
    assert!(shown.contains("charge-once version 1") && shown.contains("\"charge_id\": \"ch_2\""), "{shown}");
    assert_eq!(up.ask(&["runs", "attempts", run]).await["items"][0]["outcome"], "completed");
    assert!(up.run(&["runs", "attempts", run]).await.well().contains("MiB"));
    assert_eq!(up.ask(&["runs", "log", run]).await["items"], json!([]));
    assert_eq!(up.run(&["runs", "log", run]).await.well(), "nothing was written\n");
}

async fn look_at_effects(up: &Up, run: &str) {
    assert_eq!(up.ask(&["effects"]).await["items"].as_array().unwrap().len(), 3);
    let listed = up.ask(&["effects", "list", "--run", run, "--state", "completed", "--provider", "stripe"]).await;
    let effect = listed["items"][0]["effect_id"].as_str().unwrap();
    assert!(up.run(&["effects", "list"]).await.well().contains(effect));
    let shown = up.ask(&["effects", "show", effect]).await;
    assert_eq!(shown, listed["items"][0]);
    let text = up.run(&["effects", "show", effect]).await.well();
    assert!(text.contains(shown["wire_key"].as_str().unwrap()) && text.contains("answered"), "{text}");
    let providers = up.ask(&["provider", "list"]).await;
    assert!(providers["items"].as_array().unwrap().iter().any(|provider| provider["name"] == "stripe"));
}

/// 1: refused, or the run failed; 2: usage; 3: no server.
async fn fail_in_every_way(up: &Up, component: &str) {
    let nowhere = r#"{"order": "1", "amount_cents": 1, "customer": "c", "provider_url": "http://127.0.0.1:9"}"#;
    let denied = up.run(&["start", "charge-once", "--input", nowhere, "--wait"]).await.failed(1);
    assert!(denied.contains("the run failed") && denied.contains("deedbox runs attempts"), "{denied}");
    assert!(up.run(&["start", "unknown"]).await.failed(1).contains("no such activity"));
    let envelope = up.run(&["--json", "runs", "show", "x"]).await.failed(1);
    let envelope: Value = serde_json::from_str(&envelope).unwrap();
    assert_eq!((&envelope["error"], &envelope["message"]), (&json!("not_found"), &json!("there is no such run")));
    let words = up.run(&["deploy", component, "--token", "nonsense"]).await.failed(1);
    assert!(words.contains("not valid") && words.contains("DEEDBOX_TOKEN"), "{words}");
    assert!(up.run(&["tenant", "list"]).await.failed(1).contains("admin-token"));

    assert!(up.run(&["start", "charge-once", "--input", "{"]).await.failed(2).contains("--input is not JSON"));
    assert!(up.run(&["deploy", "/no/such/file.wasm"]).await.failed(2).contains("/no/such/file.wasm"));
    assert!(up.run(&["deploy", component, "--unheard-of"]).await.failed(2).contains("--unheard-of"));
    assert!(up.run(&["runs", "--url", "ftp://127.0.0.1:1"]).await.failed(2).contains("http"));
    let place = place();
    let no_token = deedbox(&["runs", "--url", &up.address, "--data-dir", place.path().to_str().unwrap()]);
    assert!(finish(no_token).await.failed(2).contains("no token"));

    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let words = up.run(&["runs", "--url", &format!("http://{free}")]).await.failed(3);
    assert!(words.contains("no server answers") && words.contains("deedbox up"), "{words}");
    let words = up.run(&["--json", "runs", "--url", &format!("http://{free}")]).await.failed(3);
    assert_eq!(serde_json::from_str::<Value>(&words).unwrap()["error"], "unreachable");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_makes_tenants_and_tokens_that_work_until_they_are_revoked() {
    let place = place();
    let up = Up::start(&place.path().join("d")).await;
    let admin = |arguments: &[&str]| {
        let mut command = deedbox(arguments);
        command.env("DEEDBOX_URL", &up.address).env("DEEDBOX_TOKEN", &up.admin_token);
        finish(command)
    };
    admin(&["tenant", "create", "shop-1"]).await.well();
    assert!(admin(&["tenant", "create", "shop-1"]).await.failed(1).contains("already"));
    assert_eq!(admin(&["--json", "tenant", "list"]).await.json()["items"][1], json!({ "tenant": "shop-1" }));
    let made = admin(&["--json", "token", "create", "--tenant", "shop-1", "--label", "till"]).await.json();
    let token = made["token"].as_str().unwrap();
    up.run(&["runs", "--token", token]).await.well();
    let listed = admin(&["token", "list", "--tenant", "shop-1"]).await.well();
    assert!(listed.contains("till") && !listed.contains(token.rsplit('.').next().unwrap()), "{listed}");
    admin(&["token", "revoke", made["token_id"].as_str().unwrap(), "--tenant", "shop-1"]).await.well();
    assert!(up.run(&["runs", "--token", token]).await.failed(1).contains("revoked"));

    let made = admin(&["--json", "token", "create", "shop-1", "--scope", "read", "--expires", "1h"]).await.json();
    assert_eq!(made["scopes"], json!(["read"]));
    let token = made["token"].as_str().unwrap();
    up.run(&["runs", "--token", token]).await.well();
    assert!(up.run(&["secret", "rm", "x", "--token", token]).await.failed(1).contains("scope"));
    assert!(admin(&["token", "list", "shop-1", "--limit", "5"]).await.well().contains("read"));
    assert!(admin(&["token", "create", "shop-1", "--scope", "write"]).await.failed(2).contains("deploy"));

    admin(&["tenant", "limits", "shop-1", "--max-queued", "5", "--egress", "api.example.com"]).await.well();
    let limits = admin(&["--json", "tenant", "limits", "shop-1", "--max-modules", "2"]).await.json();
    assert_eq!((&limits["max_queued"], &limits["max_modules"]), (&json!(5), &json!(2)), "what was not said stays");
    assert_eq!(limits["egress"], json!(["api.example.com"]));
    let lifted =
        admin(&["--json", "tenant", "limits", "shop-1", "--max-queued", "none", "--egress", "any"]).await.json();
    assert_eq!((&lifted["max_queued"], &lifted["egress"]), (&json!(null), &json!(null)));

    // On the machine itself the tokens of the data directory are found.
    let data = up.data_dir.to_str().unwrap();
    for arguments in [&["tenant", "list"][..], &["runs"], &["token", "list"]] {
        finish(deedbox(&[arguments, &["--url", &up.address, "--data-dir", data]].concat())).await.well();
    }
    up.stop("TERM").await;
}
