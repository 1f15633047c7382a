//! A provider that reflects the credential that it was sent: nobody gets to see it.

use deedbox_books::{Behaviour, Options};
use serde_json::{Value, json};

use super::{TENANT, call, policy, tables_with};
use crate::harness::{World, logs, provider};

/// With characters that every encoding treats in its own way.
const SECRET: &str = "sk_live_4eC39H+/=qLyjWDarjtT1zdp7dc";

fn forms() -> Vec<String> {
    use data_encoding::{BASE64, BASE64URL, HEXLOWER};
    let suffixed = format!("{SECRET}x");
    vec![
        SECRET.to_owned(),
        BASE64.encode(SECRET.as_bytes()),
        BASE64.encode(suffixed.as_bytes()),
        BASE64URL.encode(SECRET.as_bytes()),
        HEXLOWER.encode(SECRET.as_bytes()),
        SECRET.replace('/', "\\/"),
        SECRET.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D"),
    ]
}

/// F-E14, F-H04, R-L16.
#[tokio::test(flavor = "multi_thread")]
async fn a_reflected_secret_is_masked_for_the_guest_in_the_ledger_and_in_the_logs() {
    logs::keep();
    let world = World::keyed().await;
    world.node.gateway().vault().put(TENANT, "key", SECRET).await.unwrap();
    world.deploy("send", "stripe", policy("stripe")).await;
    let reflected = forms().join("\n");
    let refusal = Behaviour::StatusBeforeApply { status: 402, retry_after: None, body: Some(reflected) };
    world.script(&[Behaviour::Echo, refusal]).await;
    let mut named = call(&world.charges());
    named["identity"] = json!({ "named": "echo" });
    let run = world.start("send", json!({ "calls": [named, call(&world.charges()), named] })).await;
    world.work().await;
    let output = world.output(run).await;
    let arrival = &world.books.arrivals().await.unwrap()[0];
    assert_eq!(arrival.header("authorization"), Some(format!("Bearer {SECRET}").as_str()), "it was sent");
    assert!(output[0]["body"].as_str().unwrap().contains("Bearer [masked]"), "{output}");
    let header = |name: &str| {
        let pairs = output[0]["headers"].as_array().unwrap().clone();
        pairs.into_iter().find(|pair| pair[0] == name).map(|pair| pair[1].clone())
    };
    assert_eq!(header("x-echo-authorization"), Some(Value::from("Bearer [masked]")), "{output}");
    assert_eq!(output[1]["body"].as_str().unwrap().matches("[masked]").count(), forms().len(), "{output}");
    for form in forms() {
        assert!(!output.to_string().contains(&form), "the guest got {form}");
        assert_eq!(tables_with(&world, &form).await, Vec::<String>::new(), "{form}");
        assert!(!logs::all().contains(&form), "{form} in the logs");
    }
}

/// F-E14: a session of the provider's is nobody's to keep.
#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_is_given_to_nobody_and_recorded_nowhere() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    world.script(&[Behaviour::Echo]).await;
    let mut named = call(&world.charges());
    named["identity"] = json!({ "named": "echo" });
    named["headers"] = json!([["x-canary", "kept"]]);
    let run = world.start("send", json!({ "calls": [named, named] })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!(output[1]["source"], "replayed");
    let replayed = output[1]["headers"].to_string();
    assert!(!replayed.contains("x-echo"), "only listed headers are recorded: {replayed}");
    assert!(!output.to_string().contains("set-cookie"), "{output}");
}

/// F-H03: there are no placeholders. What looks like one is what the guest has written.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_guest_writes_is_replaced_by_a_secret() {
    let world = World::keyed().await;
    world.node.gateway().vault().put(TENANT, "key", SECRET).await.unwrap();
    world.deploy("send", "stripe", policy("stripe")).await;
    let words = ["{secret}", "{{key}}", "${key}", "{user}", "$DEEDBOX_SECRET_key"].join(" ");
    let url = format!("{}?q={{secret}}", world.charges());
    let post = json!({ "method": "POST", "url": url, "body": words, "headers": [["x-own", words]] });
    let run = world.start("send", json!({ "calls": [post] })).await;
    world.work().await;
    assert_eq!(world.output(run).await[0]["status"], 201);
    let arrival = &world.books.arrivals().await.unwrap()[0];
    assert_eq!((arrival.body.as_str(), arrival.header("x-own")), (words.as_str(), Some(words.as_str())));
    assert!(arrival.path_and_query.contains("secret"), "{}", arrival.path_and_query);
    let elsewhere = arrival.headers.iter().filter(|(name, _)| name != "authorization");
    assert!(elsewhere.into_iter().all(|(_, value)| !value.contains(SECRET)));
}

/// F-H03: it goes to the hosts of its profile alone, whatever the guest writes for another.
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_goes_to_no_host_of_another_profile() {
    let world = World::keyed().await;
    world.node.gateway().vault().put(TENANT, "key", SECRET).await.unwrap();
    let options = Options { keyless: false, convention: None };
    let (other, serving) = provider(world.dir.path().join("other"), options).await;
    let origin = format!("http://{}", other.address);
    let mut policy = policy("stripe");
    policy["egress"] = json!({ "allow": [world.origin(), origin] });
    world.deploy("send", "stripe", policy).await;
    let words = "{secret} Bearer {key}";
    let elsewhere = json!({
        "method": "POST",
        "url": format!("{origin}/{{secret}}/key?key=stripe"),
        "body": words,
        "headers": [["authorization", words], ["x-own", words]],
    });
    let run = world.start("send", json!({ "calls": [elsewhere, call(&world.charges())] })).await;
    world.work().await;
    assert_eq!(world.output(run).await[1]["status"], 201);
    let arrived = &other.arrivals().await.unwrap()[0];
    assert_eq!(arrived.header("authorization"), Some(words), "what the guest wrote is what was sent");
    let whole = format!("{} {} {:?}", arrived.path_and_query, arrived.body, arrived.headers);
    assert!(forms().iter().all(|form| !whole.contains(form.as_str())), "{whole}");
    let own = &world.books.arrivals().await.unwrap()[0];
    assert_eq!(own.header("authorization"), Some(format!("Bearer {SECRET}").as_str()), "its own host gets it");
    serving.abort();
}
