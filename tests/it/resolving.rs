//! Names: resolved once for each send, by the name servers that the settings name, and only what was checked is connected to.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use deedbox::config::Config;
use deedbox_books::{Books, Options, Provider};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::harness::dns::{NameServer, Says};
use crate::harness::raw::full_listener;
use crate::harness::world::Run;
use crate::harness::{World, config, neighbour};
use crate::worker::until;

/// Where the provider is: an address that is private, as all of this machine's are, and that the policy names.
const ALLOWED: &str = "127.0.0.2";

/// A node that asks a name server of the test's, a provider, and at the same port of 127.0.0.1 whoever must not be reached.
struct Stage {
    world: World,
    server: NameServer,
    provider: Books,
    canary: std::net::TcpListener,
}

impl Stage {
    async fn new(says: impl Fn(&str, usize) -> Says + Send + 'static, change: impl FnOnce(&mut Config)) -> Self {
        let (allowed, canary) = at_one_port().await;
        let server = NameServer::start(says).await;
        let mut settings = config();
        settings.gateway.dns_servers = vec![server.address];
        change(&mut settings);
        let world = World::with(Options { keyless: false, convention: None }, settings).await;
        let provider = serve(allowed, world.dir.path().join("named")).await;
        Self { world, server, provider, canary }
    }

    fn origin(&self, name: &str) -> String {
        format!("http://{name}:{}", self.provider.address.port())
    }

    /// A policy that lets `send` reach these names at these addresses.
    fn policy(&self, names: &[String], addresses: &[&str]) -> Value {
        let origins: Vec<String> = names.iter().map(|name| self.origin(name)).collect();
        let providers: Map<String, Value> = origins.iter().map(|origin| (origin.clone(), json!("stripe"))).collect();
        json!({
            "egress": { "allow": origins, "private_addresses": addresses },
            "providers": providers,
            "retry": { "initial_interval": "1ms", "jitter": "none" },
        })
    }

    async fn deploy(&self, names: &[&str], addresses: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.world.deploy("send", "stripe", self.policy(&names, addresses)).await;
    }

    fn call(&self, name: &str) -> Value {
        json!({ "method": "POST", "url": format!("{}/v1/charges", self.origin(name)), "json": {} })
    }

    /// The errors of calls, `-` where there was an answer, each with its message.
    async fn outcomes(&self, calls: Vec<Value>) -> Vec<(String, String)> {
        let run = self.world.start("send", json!({ "calls": calls })).await;
        self.world.work().await;
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let output = self.world.output(run).await;
        output.as_array().unwrap().iter().map(|call| (text(&call["error"]), text(&call["message"]))).collect()
    }

    async fn arrivals(&self) -> usize {
        assert_eq!(self.canary.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "the canary was reached");
        self.provider.arrivals().await.unwrap().len()
    }
}

/// A listener at the allowed address, and one at the same port of 127.0.0.1.
async fn at_one_port() -> (TcpListener, std::net::TcpListener) {
    for _ in 0..100 {
        let allowed = TcpListener::bind((ALLOWED, 0)).await.unwrap();
        if let Ok(canary) = std::net::TcpListener::bind(("127.0.0.1", allowed.local_addr().unwrap().port())) {
            canary.set_nonblocking(true).unwrap();
            return (allowed, canary);
        }
    }
    panic!("no port is free at both addresses");
}

async fn serve(listener: TcpListener, dir: PathBuf) -> Books {
    let address = listener.local_addr().unwrap();
    std::fs::create_dir_all(&dir).unwrap();
    tokio::spawn(async move {
        let options = Options { keyless: false, convention: None };
        Provider::serve(listener, dir, options, std::future::pending()).await.unwrap();
    });
    Books { address }
}

/// F-E02: a name that is at an allowed address and at a forbidden one by turns, 200 times.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_checked_is_connected_to_and_nothing_else() {
    let by_turns = |_: &str, before: usize| Says::at(&[[ALLOWED, "127.0.0.1"][before % 2]]);
    let stage = Stage::new(by_turns, |_| {}).await;
    stage.deploy(&["rebind.test"], &[ALLOWED]).await;
    let outcomes = stage.outcomes(vec![stage.call("rebind.test"); 200]).await;
    let count = |error: &str| outcomes.iter().filter(|(own, _)| own == error).count();
    let (sent, denied) = (count("-"), count("denied"));
    assert_eq!(sent + denied, 200, "{outcomes:?}");
    // A question that is asked twice changes whose turn it is.
    assert!(sent >= 50 && denied >= 50, "{sent} were sent, {denied} denied");
    assert_eq!(stage.arrivals().await, sent);
    assert!(stage.server.asked_for("rebind.test") >= 200, "each call asks anew");
}

/// F-E02: also what names lead to in roundabout ways.
#[tokio::test(flavor = "multi_thread")]
async fn each_address_of_an_answer_is_judged_by_itself() {
    let says = |name: &str, _: usize| match name {
        "mixed.test" => Says::at(&["127.0.0.1", "::1", ALLOWED, "169.254.169.254"]),
        "many.test" => {
            let others = (0..59).map(|n| format!("127.0.1.{n}")).chain([ALLOWED.to_owned()]);
            Says::Addresses(others.map(|address| address.parse().unwrap()).collect())
        }
        "alias.test" => Says::AliasOf("mixed.test"),
        "private.test" => Says::at(&["127.0.0.1", "10.0.0.1"]),
        "alias-of-private.test" => Says::AliasOf("private.test"),
        "mapped.test" => Says::at(&["::ffff:127.0.0.1"]),
        "translated.test" => Says::at(&["64:ff9b::7f00:1"]),
        "unspecified.test" => Says::at(&["0.0.0.0", "::"]),
        "empty.test" => Says::at(&[]),
        _ => Says::NoSuchName,
    };
    let stage = Stage::new(says, |_| {}).await;
    let reached = ["mixed.test", "many.test", "alias.test"];
    let denied = [
        "private.test",
        "alias-of-private.test",
        "mapped.test",
        "translated.test",
        "unspecified.test",
        "localhost",
        "a.localhost",
    ];
    let nowhere = ["empty.test", "none.test"];
    let all: Vec<&str> = reached.into_iter().chain(denied).chain(nowhere).collect();
    stage.deploy(&all, &[ALLOWED]).await;
    let outcomes = stage.outcomes(all.iter().map(|name| stage.call(name)).collect()).await;
    for (name, (error, message)) in all.iter().zip(&outcomes) {
        let (expected, words) = match *name {
            name if reached.contains(&name) => ("-", "-"),
            name if denied.contains(&name) => ("denied", "policy.egress.private_addresses"),
            "empty.test" => ("unreachable", "has no address"),
            _ => ("unreachable", "does not exist"),
        };
        assert_eq!(error, expected, "{name}: {message}");
        assert!(message.contains(words), "{name}: {message}");
    }
    assert_eq!(stage.arrivals().await, reached.len());
    assert!(stage.server.names().iter().all(|name| !name.ends_with("localhost")), "that one is known");
}

/// F-E19: a name server that is silent counts as a provider that stalls.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_nobody_answers_for_is_given_up_in_time_and_nothing_was_sent() {
    let stage = Stage::new(|_, _| Says::Nothing, |config| config.gateway.resolve_ms = 300).await;
    stage.deploy(&["silent.test"], &[ALLOWED]).await;
    let mut short = stage.call("silent.test");
    short["timeout_ms"] = json!(100);
    let begun = Instant::now();
    let run = stage.world.start("send", json!({ "calls": [stage.call("silent.test"), short] })).await;
    assert!(stage.world.node.worker().run_once().await.unwrap());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let output = stage.world.output(run).await;
    for (call, limit) in [(0_usize, "300 ms (gateway.resolve_ms)"), (1, "100 ms (the call's own time-out)")] {
        assert_eq!(output[call]["error"], "unreachable", "{output}");
        assert!(output[call]["message"].as_str().unwrap().contains(limit), "{output}");
    }
    let sends = stage.world.sends(run).await;
    assert!(sends.iter().all(|send| send.state == "released"), "{sends:?}");
    assert_eq!(stage.arrivals().await, 0);
}

/// A recorded answer needs no network, and so no name.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_replayed_when_the_name_is_gone() {
    let says = |_: &str, before: usize| if before == 0 { Says::at(&[ALLOWED]) } else { Says::NoSuchName };
    let stage = Stage::new(says, |_| {}).await;
    stage.deploy(&["gone.test"], &[ALLOWED]).await;
    let input = json!({ "calls": [stage.call("gone.test")], "then": ["fail", "return"] });
    let run = stage.world.start("send", input).await;
    stage.world.work().await;
    assert_eq!(stage.world.outcomes(run).await, ["failed", "completed"]);
    assert_eq!(stage.world.output(run).await[0]["source"], "replayed");
    assert_eq!(stage.arrivals().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_leads_nowhere_leaves_time_for_the_next_and_so_many_are_tried() {
    let says = |name: &str, _: usize| match name {
        "slow.test" => Says::at(&["127.0.0.3", ALLOWED]),
        "refused.test" => Says::at(&["127.0.0.4", ALLOWED]),
        _ => Says::at(&["127.0.0.4", "127.0.0.5", ALLOWED]),
    };
    let change = |config: &mut Config| {
        config.gateway.connect_ms = 2_000;
        config.gateway.max_addresses = 2;
    };
    let stage = Stage::new(says, change).await;
    let names = ["slow.test", "refused.test", "beyond.test"];
    stage.deploy(&names, &["127.0.0.3", "127.0.0.4", "127.0.0.5", ALLOWED]).await;
    let _full = full_listener(&format!("127.0.0.3:{}", stage.provider.address.port())).await;
    let outcomes = stage.outcomes(names.iter().map(|name| stage.call(name)).collect()).await;
    let errors: Vec<&str> = outcomes.iter().map(|(error, _)| error.as_str()).collect();
    assert_eq!(errors, ["-", "-", "unreachable"], "{outcomes:?}");
    assert_eq!(stage.arrivals().await, 2);
}

/// F-E22: a tenant whose name servers are dead waits for itself.
#[tokio::test(flavor = "multi_thread")]
async fn names_of_one_tenant_that_nobody_answers_for_do_not_hold_up_those_of_another() {
    let says = |name: &str, _: usize| if name.starts_with("dead") { Says::Nothing } else { Says::at(&[ALLOWED]) };
    let change = |config: &mut Config| {
        config.gateway.resolve_ms = 30_000;
        config.gateway.max_resolving = 4;
        config.gateway.max_tenant_resolving = 2;
        config.worker.grace_ms = 100;
    };
    let stage = Stage::new(says, change).await;
    let dead: Vec<String> = (0..8).map(|n| format!("dead-{n}.test")).collect();
    stage.world.deploy("send", "stripe", stage.policy(&dead, &[ALLOWED])).await;
    neighbour::deploy(&stage.world, "send", stage.policy(&["fine.test".to_owned()], &[ALLOWED])).await;
    let mut waiting = Vec::new();
    for name in &dead {
        waiting.push(stage.world.start("send", json!({ "calls": [stage.call(name)] })).await);
    }
    let stop = CancellationToken::new();
    let looking = async {
        until("two names are asked for", async || asked_dead(&stage).len() == 2).await;
        for _ in 0..5 {
            let run = neighbour::start(&stage.world, "send", json!({ "calls": [stage.call("fine.test")] })).await;
            until("the neighbour is served", async || has_ended(&stage, run).await).await;
            assert_eq!(neighbour::output(&stage.world, run).await[0]["error"], Value::Null);
        }
        assert_eq!(asked_dead(&stage).len(), 2, "no more than its own places");
        for run in waiting {
            assert!(stage.world.run(run).await.ended_at.is_none());
        }
        stop.cancel();
    };
    tokio::join!(stage.world.node.work(stop.clone()), looking);
    assert_eq!(stage.arrivals().await, 5);
}

fn asked_dead(stage: &Stage) -> BTreeSet<String> {
    stage.server.names().into_iter().filter(|name| name.starts_with("dead")).collect()
}

async fn has_ended(stage: &Stage, run: Run) -> bool {
    neighbour::find(&stage.world, run).await.ended_at.is_some()
}
