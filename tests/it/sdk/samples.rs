//! What each sample that calls a provider must do, in data: its input, its effects with their bodies, its output. One list for all
//! languages.

use deedbox::key;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::TENANT;

/// One sample, undisturbed.
#[derive(Debug)]
pub struct Sample {
    pub activity: &'static str,
    /// For a provider's origin and the run.
    pub input: fn(&str, Uuid) -> Value,
    pub effects: &'static [Effect],
    /// The name and the payload of the signal that it waits for.
    pub signal: Option<(&'static str, &'static str)>,
    /// From the ids of what the provider made, in the order of the effects.
    pub output: fn(&[String]) -> Value,
}

/// One effect of a sample, a POST.
#[derive(Debug)]
pub struct Effect {
    pub path: &'static str,
    /// As the ledger shows it.
    pub identity: fn(Uuid) -> String,
    pub keying: &'static str,
    /// From the ids of what the effects before it made.
    pub body: fn(Uuid, &[String]) -> Value,
}

const NAMED: &str = "activity-recipe";

pub static SAMPLES: [Sample; 4] = [
    Sample {
        activity: "charge-once",
        input: |origin, run| json!({ "provider_url": origin, "order": order(run), "amount_cents": 4200, "customer": "cus_7" }),
        effects: &[Effect {
            path: "/v1/charges",
            identity: |_| "charge".to_owned(),
            keying: NAMED,
            body: |run, _| json!({ "amount_cents": 4200, "customer": "cus_7", "order": order(run) }),
        }],
        signal: None,
        output: |ids| json!({ "outcome": "charged", "charge_id": ids[0] }),
    },
    Sample {
        activity: "welcome-user",
        input: |origin, _| json!({ "provider_url": origin, "user": "Ada ☂", "email": "ada@example.com" }),
        effects: &[
            Effect {
                path: "/v1/accounts",
                identity: |_| "create-account".to_owned(),
                keying: NAMED,
                body: |run, _| json!({ "user": "Ada ☂", "email": "ada@example.com", "reference": subkey(run, "account") }),
            },
            Effect {
                path: "/v1/mails",
                identity: |_| "welcome-mail".to_owned(),
                keying: NAMED,
                body: |run, ids| json!({ "to": "ada@example.com", "account": ids[0], "reference": subkey(run, "mail") }),
            },
        ],
        signal: None,
        output: |ids| json!({ "account_id": ids[0], "mail_id": ids[1] }),
    },
    Sample {
        activity: "wait-for-webhook",
        input: |origin, run| json!({ "provider_url": origin, "order": order(run), "wait_ms": null }),
        effects: &[Effect {
            path: "/v1/payments",
            identity: |_| "request-payment".to_owned(),
            keying: NAMED,
            body: |run, _| json!({ "order": order(run), "reference": key::run_key(TENANT, run).text() }),
        }],
        signal: Some(("paid", r#"{"by":"bank"}"#)),
        output: |ids| json!({ "outcome": "paid", "payment_id": ids[0], "by": "bank" }),
    },
    Sample {
        activity: "reject-as-data",
        input: |origin, run| json!({ "provider_url": origin, "order": order(run) }),
        effects: &[Effect {
            path: "/v1/orders",
            identity: |run| format!("place-order {}", order(run)),
            keying: "business-identity",
            body: |run, _| json!({ "order": order(run) }),
        }],
        signal: None,
        output: |ids| json!({ "outcome": "placed", "order_id": ids[0] }),
    },
];

/// An order of this run alone.
fn order(run: Uuid) -> String {
    format!("order-{run}")
}

fn subkey(run: Uuid, name: &str) -> String {
    key::subkey(&key::run_key(TENANT, run), name).unwrap().text()
}
