//! Rules that say more than an origin, and what is said of a denial.

use deedbox_books::Options;
use serde_json::{Value, json};

use super::{errors, post};
use crate::api::Api;
use crate::harness::dns::{NameServer, Says};
use crate::harness::{World, claimed, config, logs};

/// A rule for the provider with these members.
fn rule(world: &World, more: Value) -> Value {
    let mut rule = json!({ "scheme": "http", "host": "127.0.0.1", "port": world.books.address.port() });
    more.as_object().unwrap().iter().for_each(|(name, value)| rule[name] = value.clone());
    rule
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_bounds_methods_and_paths_and_the_denial_says_which_and_what_to_add() {
    let world = World::keyed().await;
    let narrow = rule(&world, json!({ "methods": ["POST"], "path_prefix": "/v1" }));
    world.deploy("send", "stripe", json!({ "egress": { "allow": ["https://api.example.com", narrow] } })).await;
    let call = |method: &str, path: &str| json!({ "method": method, "url": format!("{}{path}", world.origin()) });
    let denied = [
        ("GET", "/v1/charges", "GET"),
        ("POST", "/v2/charges", "/v2/charges"),
        ("POST", "/v10", "/v10"),
        ("POST", "/v1/../admin", "/admin"),
        ("POST", "/v1/%2e%2e/admin", "/admin"),
        ("POST", "/v1/.%2E/admin?key=/v1", "/admin"),
        ("POST", "/", "/"),
    ];
    let calls = denied.iter().map(|(method, path, _)| call(method, path)).collect();
    for ((error, message), (_, path, said)) in errors(&world, calls).await.iter().zip(denied) {
        assert_eq!(error, "denied", "{path}: {message}");
        assert!(message.contains("policy.egress.allow[1]") && message.contains(&format!("\"{said}\"")), "{message}");
        assert!(!message.contains("key="), "{message}");
    }
    let unclear = ["/v1/..%2fadmin", "/v1/%2e%2e%5cadmin", "/v1/%252e%252e/admin", "/v1/..;/admin"];
    for (error, message) in errors(&world, unclear.iter().map(|path| call("POST", path)).collect()).await {
        assert_eq!(error, "invalid-request", "{message}");
        assert!(message.contains("policy.egress.allow[1]"), "{message}");
    }
    assert!(claimed(&world.database).await.is_empty() && world.books.arrivals().await.unwrap().is_empty());
    assert_eq!(errors(&world, vec![call("POST", "/v2/../v1/charges?key=1")]).await[0].0, "-");
    let arrivals = world.books.arrivals().await.unwrap();
    assert_eq!(arrivals.iter().map(|a| a.path_and_query.as_str()).collect::<Vec<_>>(), ["/v1/charges?key=1"]);
}

/// The line of the log, put into the policy, allows the request; and a guest cannot fill the log with it.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_has_the_line_that_would_allow_a_denied_request_once() {
    logs::keep();
    let world = World::keyed().await;
    let narrow = rule(&world, json!({ "methods": ["POST"], "path_prefix": "/v1" }));
    world.deploy("send", "stripe", json!({ "egress": { "allow": [narrow] } })).await;
    let url = format!("{}/v2/line-58ce?key=canary-0d7a", world.origin());
    let mut call = post(&url);
    call["headers"] = json!([["x-own", "canary-0d7a"]]);
    let run = world.start("send", json!({ "calls": vec![call.clone(); 5] })).await;
    world.work().await;
    assert_eq!(world.output(run).await[4]["error"], "denied");
    let added = rule(&world, json!({ "methods": ["POST"], "path_prefix": "/v2/line-58ce" }));
    let said = logs::all();
    let lines: Vec<_> = said.lines().filter(|line| line.contains("/v2/line-58ce") && line.contains("denied")).collect();
    let [line] = lines[..] else { panic!("one line, not {lines:?}") };
    let json = &line[line.find('{').unwrap()..=line.rfind('}').unwrap()];
    let json = &json[json.find("{\"").unwrap()..];
    assert_eq!(serde_json::from_str::<Value>(json).unwrap(), added, "{line}");
    assert!(line.contains("policy.egress.allow") && !line.contains("canary-0d7a"), "{line}");
    world.deploy("send", "stripe", json!({ "egress": { "allow": [narrow, added] } })).await;
    assert_eq!(errors(&world, vec![call]).await[0].0, "-");
}

/// A look-up is a request like any other.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_up_must_be_allowed_too() {
    let world = World::keyed().await;
    world
        .deploy("send", "stripe", json!({ "egress": { "allow": [rule(&world, json!({ "methods": ["POST"] }))] } }))
        .await;
    let mut call = post(&world.charges());
    call["lookup"] = json!({ "url": world.charges(), "found": "/id" });
    let (error, message) = errors(&world, vec![call]).await.remove(0);
    assert_eq!(error, "denied");
    assert!(message.contains("\"GET\""), "{message}");
    assert!(claimed(&world.database).await.is_empty());
}

/// What is judged is what is sent, also where the host itself changes the path.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_the_path_does_not_lead_out_of_the_prefix() {
    let profiles = tempfile::tempdir().unwrap();
    let profile = "name = \"in-path\"\nversion = \"1\"\nsource = \"this test\"\n\
                   [[operation]]\n[operation.key]\ncarrier = { path = 1 }\n";
    std::fs::write(profiles.path().join("in-path.toml"), profile).unwrap();
    let mut settings = config();
    settings.gateway.profiles_dir = Some(profiles.path().to_owned());
    let world = World::with(Options { keyless: false, convention: None }, settings).await;
    let put = |path: &str| json!({ "method": "PUT", "url": format!("{}{path}", world.origin()), "json": {} });
    for (prefix, reached) in [("/v1/fixed", 0), ("/v1", 1)] {
        let egress = json!({ "allow": [rule(&world, json!({ "path_prefix": prefix }))] });
        world.deploy("send", "in-path", json!({ "egress": egress, "retry": { "max_attempts": 1 } })).await;
        let (error, message) = errors(&world, vec![put("/v1/fixed")]).await.remove(0);
        assert_eq!(error == "denied", reached == 0, "{prefix}: {error} {message}");
        assert_eq!(world.books.arrivals().await.unwrap().len(), reached, "{prefix}");
    }
}

/// F-E08: a name that no rule allows is not even resolved.
#[tokio::test(flavor = "multi_thread")]
async fn a_wildcard_reaches_all_that_is_below_it_and_nothing_else() {
    let server = NameServer::start(|_, _| Says::at(&["127.0.0.1"])).await;
    let mut settings = config();
    settings.gateway.dns_servers = vec![server.address];
    let world = World::with(Options { keyless: false, convention: None }, settings).await;
    let allow = [rule(&world, json!({ "host": "*.wild.test", "methods": ["POST"] }))];
    let egress = json!({ "allow": allow, "private_addresses": ["127.0.0.1"] });
    world.deploy("send", "stripe", json!({ "egress": egress })).await;
    let port = world.books.address.port();
    let hosts = ["a.wild.test", "A.B.wild.test", "wild.test", "evilwild.test", "a.wild.test.evil.test", "a.wild.test."];
    let calls = hosts.iter().map(|host| post(&format!("http://{host}:{port}/v1/charges"))).collect();
    let told: Vec<_> = errors(&world, calls).await.into_iter().map(|(error, _)| error).collect();
    assert_eq!(told, ["-", "-", "denied", "denied", "denied", "denied"]);
    assert_eq!(world.books.arrivals().await.unwrap().len(), 2);
    let asked = server.names();
    assert!(asked.iter().all(|name| ["a.wild.test", "a.b.wild.test"].contains(&name.as_str())), "{asked:?}");
}

/// Of hosts that only a wildcard allows nobody says at the deployment who speaks for them. A profile that is put later would
/// rename their effects, and make others of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_wildcard_names_no_provider_whatever_profile_is_put_later() {
    let api = Api::idle().await;
    let policy = json!({ "egress": { "allow": ["http://*.wild.invalid"] }, "retry": { "max_attempts": 1 } });
    let deployed = api.deploy("send", policy).await;
    assert_eq!(deployed["policy"]["egress"]["allow"], json!(["http://*.wild.invalid"]));
    assert_eq!(deployed["policy"]["providers"], json!({}));
    let late = "extends = \"generic\"\nname = \"late\"\nhosts = [\"a.wild.invalid\"]\n";
    api.acme.put("/v1/providers/late", &json!({ "profile": late })).await.expect(201);
    let hosts = ["a.wild.invalid", "a.b.wild.invalid", "wild.invalid", "a.wild.invalid.evil.test", "evilwild.invalid"];
    let calls = hosts.map(|host| post(&format!("http://{host}/x")));
    let run = api.start("send", json!({ "calls": calls })).await;
    api.work().await;
    let output = api.run(&run).await["output"].clone();
    let errors: Vec<_> = output.as_array().unwrap().iter().map(|call| call["error"].clone()).collect();
    assert_eq!(errors, ["unreachable", "unreachable", "denied", "denied", "denied"], "{output}");
    let providers: Vec<_> = api.effects_of(&run).await.iter().map(|effect| effect["provider"].clone()).collect();
    assert_eq!(providers, ["unlisted", "unlisted"]);
}
