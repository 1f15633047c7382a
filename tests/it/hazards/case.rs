//! One row of the table as the tests run it: the provider it meets, its input, and where its first worker is lost.

use std::path::PathBuf;

use deedbox::config::Config;
use deedbox::probe::{self, Point};
use deedbox_books::{Convention, Options};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::cell::work_until_settled;
use crate::harness::freeze::Victim;
use crate::harness::process::Process;
use crate::harness::{World, config, http, node};

/// The same in all worlds, so that their keys are the same, too.
const RUN: Uuid = Uuid::from_u128(0x0190_b1c2_0000_7000_8000_0000_0000_0042);

/// How the first worker is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// Its thread and all that it has open.
    InProcess,
    /// A process of its own, by SIGKILL.
    Kill,
}

#[derive(Debug)]
pub struct Case {
    pub name: &'static str,
    /// Without the provider's address.
    pub input: Value,
    /// Of every run in a world of its own.
    pub output: Value,
    profile: &'static str,
    policy: Value,
    /// A row that is there before: its table, and what it says.
    seed: Option<(&'static str, Value)>,
}

impl Case {
    /// The case of that name.
    pub fn of(name: &str) -> Self {
        let order = json!({ "order": 1042, "amount_cents": 4200 });
        let new = |name, profile, input, output| Self { name, input, output, profile, policy: json!({}), seed: None };
        match name {
            "insert_row" => new("insert_row", "keyless", order, json!({ "id": 1 })),
            "charge_card" => new("charge_card", "stripe", order, json!({ "id": "ch_1" })),
            "send_email" => new("send_email", "resend", json!({ "to": "ada@example.com" }), json!({ "id": "email_1" })),
            "increment_counter" => {
                let earned = json!({ "customer": 7, "event": 311, "points": 5 });
                new("increment_counter", "keyless", earned, json!({ "value": 5 }))
            }
            "publish_event" => new("publish_event", "topics", json!({ "order": 1042 }), json!({ "offset": 1 })),
            "delete_by_id" => Self {
                seed: Some(("sessions", json!({ "user": "ada" }))),
                ..new("delete_by_id", "keyless", json!({ "id": 1 }), json!(null))
            },
            "put_document" => {
                let sales = json!({ "year": 2026, "month": 3, "sales_cents": [4200, 1999] });
                new("put_document", "keyless", sales, json!(6199))
            }
            "business_rejection" => {
                let rejected = json!({ "outcome": "rejected", "reason": "card_declined" });
                new("business_rejection", "stripe", order, rejected)
            }
            "read_only" => Self {
                seed: Some(("customers", json!({ "customer": 7, "email": "ada@example.com" }))),
                ..new("read_only", "keyless", json!({ "customer": 7 }), json!("ada@example.com"))
            },
            "own_uuid" => Self {
                policy: json!({ "guest_keys": "trust" }),
                ..new("own_uuid", "stripe", order, json!({ "id": "ch_1" }))
            },
            "append_to_file" => new("append_to_file", "keyless", json!({ "line": "ada logged in\n" }), json!(null)),
            "ship_once" => new("ship_once", "stripe", json!({ "order": 1042 }), json!({ "id": 1 })),
            other => panic!("{other} is no case"),
        }
    }

    /// The same, with another input.
    pub fn with_input(self, input: Value) -> Self {
        Self { input, ..self }
    }

    /// The same, with more said by its deployment.
    pub fn with_policy(self, policy: Value) -> Self {
        Self { policy, ..self }
    }

    /// The same, at a provider of another profile.
    pub fn at(self, profile: &'static str) -> Self {
        Self { profile, ..self }
    }

    /// The provider's ways, which the naive twin meets as well.
    pub fn options(&self) -> Options {
        let convention = match self.profile {
            "stripe" => Some(Convention::stripe()),
            "resend" => Some(Convention::resend()),
            _ => None,
        };
        Options { keyless: convention.is_none(), convention }
    }

    /// How many requests the provider had before anybody's.
    pub fn seeds(&self) -> usize {
        usize::from(self.seed.is_some())
    }

    /// Whether one run leaves the world otherwise than it was.
    pub fn changes_the_world(&self) -> bool {
        !["business_rejection", "read_only"].contains(&self.name)
    }

    /// Puts what is there before into a provider's books.
    pub async fn seed(&self, origin: &str) {
        if let Some((table, row)) = &self.seed {
            let answer = http::client().post(format!("{origin}/tables/{table}/rows")).json(row).send();
            assert_eq!(answer.await.unwrap().status(), 201);
        }
    }

    /// The activity, deployed in a world of its own.
    pub async fn world(&self) -> World {
        let world = World::with(self.options(), settings()).await;
        self.seed(&world.origin()).await;
        let mut policy =
            json!({ "retry": { "max_attempts": 500, "initial_interval": "20ms", "backoff_coefficient": 1.0 } });
        policy.as_object_mut().unwrap().extend(self.policy.as_object().unwrap().clone());
        world.deploy_from("hazards.wasm", &self.activity(), self.profile, policy).await;
        world
    }

    pub async fn start(&self, world: &World) -> Uuid {
        self.start_as(world, RUN).await
    }

    pub async fn start_as(&self, world: &World, run: Uuid) -> Uuid {
        let mut input = self.input.clone();
        input["provider_url"] = world.origin().into();
        world.start_as(run, &self.activity(), input).await
    }

    /// One run to its end, undisturbed.
    pub async fn run_once(&self, world: &World) -> Uuid {
        let run = self.start(world).await;
        work_until_settled(world, &world.node, run).await;
        assert_eq!(world.outcomes(run).await, ["completed"]);
        run
    }

    /// One run whose first worker is lost once its effect has landed, and which another takes to its end.
    pub async fn run_and_crash(&self, world: &World, crash: Crash) -> Uuid {
        let run = self.start(world).await;
        match crash {
            Crash::InProcess => {
                let first = Victim::start(world, "one", settings(), Some(self.crash_point()));
                first.held().await;
                first.kill().await;
                world.expire_leases().await;
            }
            Crash::Kill => {
                let point = if self.is_claimed() { "after-response" } else { "after-return" };
                let mut first = Process::start(world, "one", Some(point), &process_settings()).await;
                first.held().await;
                first.kill();
            }
        }
        work_until_settled(world, &node(&world.database, "two", settings(), probe::none()).await, run).await;
        run
    }

    /// The provider has done it and said so, and nothing of that is in the ledger. A read is in no ledger anyway.
    fn crash_point(&self) -> Point {
        if self.is_claimed() { Point::AfterResponse } else { Point::AfterReturn }
    }

    fn is_claimed(&self) -> bool {
        self.name != "read_only"
    }

    fn activity(&self) -> String {
        self.name.replace('_', "-")
    }
}

/// No lease and no time-out is due by itself, and the profiles of the examples are known.
pub fn settings() -> Config {
    let mut config = config();
    config.worker.lease_ms = 300_000;
    config.gateway.default_send_ms = 300_000;
    config.gateway.max_send_ms = 300_000;
    config.gateway.profiles_dir = Some(profiles());
    config
}

/// For a worker in a process of its own, whose lease ends by itself.
pub fn process_settings() -> String {
    format!(
        "worker = {{ lease_ms = 2000, poll_ms = 100, grace_ms = 10000 }}
         gateway = {{ default_send_ms = 60000, max_send_ms = 60000, profiles_dir = {:?} }}
         host = {{ max_instances = 16 }}",
        profiles()
    )
}

fn profiles() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/hazards/profiles").into()
}
