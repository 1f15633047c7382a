//! `deedbox tenant limits`: shows what bounds a tenant, and changes what is said and nothing else.

use std::str::FromStr;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::client::Client;
use crate::cli::output::{Output, text};
use crate::cli::table::pairs;

/// The members of a tenant's limits, and how people call them.
const NAMES: [(&str, &str); 15] = [
    ("max_running", "runs at once"),
    ("max_queued", "runs that wait"),
    ("max_modules", "modules"),
    ("max_module_bytes", "bytes of modules"),
    ("max_memory_bytes", "memory of an attempt"),
    ("max_attempt_ms", "ms of an attempt"),
    ("max_sends_per_s", "sends in a second"),
    ("max_cpu_ms", "CPU ms of an attempt"),
    ("max_host_calls", "host calls of an attempt"),
    ("max_host_calls_per_s", "host calls in a second"),
    ("max_log_bytes", "bytes of a log"),
    ("max_output_bytes", "bytes of an output"),
    ("max_open_sends", "sends at once"),
    ("egress", "may send to"),
    ("require_signature", "signatures needed"),
];

#[derive(Debug, Default, Args)]
pub(super) struct Limits {
    tenant: String,
    /// Runs at once, on all nodes together; more stay queued.
    #[arg(long, value_name = "N|none")]
    max_running: Option<Most>,
    /// Runs that are queued or wait; more are not started.
    #[arg(long, value_name = "N|none")]
    max_queued: Option<Most>,
    /// Modules that are kept.
    #[arg(long, value_name = "N|none")]
    max_modules: Option<Most>,
    /// Bytes of all modules together.
    #[arg(long, value_name = "BYTES|none")]
    max_module_bytes: Option<Most>,
    /// Linear memory of one attempt.
    #[arg(long, value_name = "BYTES|none")]
    max_memory_bytes: Option<Most>,
    /// The longest time of one attempt, in milliseconds.
    #[arg(long, value_name = "MS|none")]
    max_attempt_ms: Option<Most>,
    /// Requests and messages in a second, to all providers together.
    #[arg(long, value_name = "N|none")]
    max_sends_per_s: Option<Most>,
    /// CPU time of one attempt, in milliseconds.
    #[arg(long, value_name = "MS|none")]
    max_cpu_ms: Option<Most>,
    /// Calls of one attempt to the host.
    #[arg(long, value_name = "N|none")]
    max_host_calls: Option<Most>,
    /// Calls of one attempt to the host in a second.
    #[arg(long, value_name = "N|none")]
    max_host_calls_per_s: Option<Most>,
    /// What is kept of each of stdout and stderr of one attempt.
    #[arg(long, value_name = "BYTES|none")]
    max_log_bytes: Option<Most>,
    /// The output of one run.
    #[arg(long, value_name = "BYTES|none")]
    max_output_bytes: Option<Most>,
    /// Sends that one attempt may have under way at once.
    #[arg(long, value_name = "N|none")]
    max_open_sends: Option<Most>,
    /// A host or origin that its deployments may send to, for example api.example.com, *.example.com or
    /// https://api.example.com:8443; may be given several times, and replaces those there are. `any`: everywhere; `nothing`:
    /// nowhere.
    #[arg(long, value_name = "PLACE|any|nothing")]
    egress: Vec<String>,
    /// Deploy only modules that one of the tenant's signers has signed.
    #[arg(long, value_name = "true|false")]
    require_signature: Option<bool>,
}

/// A number, or no limit.
#[derive(Clone, Debug, PartialEq)]
struct Most(Value);

impl FromStr for Most {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(Value::Null));
        }
        let number = text.parse::<u64>().map(|most| json!(most));
        let number = number.or_else(|_| text.parse::<f64>().map(|most| json!(most)));
        number.map(Self).ok().filter(|most| most.0.is_number()).ok_or_else(|| "it must be a number, or none".to_owned())
    }
}

impl Limits {
    pub(super) async fn run(self, client: &Client, output: &Output) -> anyhow::Result<()> {
        let path = ["v1", "tenants", &self.tenant, "limits"];
        let mut bounds = client.get(&path, &[]).await?;
        let changes = self.changes();
        if !changes.is_empty() {
            // What was not said stays. Whoever changes another limit at this very moment may be overwritten.
            let kept = NAMES.map(|(name, _)| (name.to_owned(), bounds[name].clone()));
            let mut wanted = serde_json::Map::from_iter(kept);
            wanted.extend(changes);
            bounds = client.put(&path, &Value::Object(wanted)).await?;
        }
        output.show(&bounds, |bounds| shown(&self.tenant, bounds))
    }

    /// The members that were said.
    fn changes(&self) -> serde_json::Map<String, Value> {
        let numbers = [
            ("max_running", &self.max_running),
            ("max_queued", &self.max_queued),
            ("max_modules", &self.max_modules),
            ("max_module_bytes", &self.max_module_bytes),
            ("max_memory_bytes", &self.max_memory_bytes),
            ("max_attempt_ms", &self.max_attempt_ms),
            ("max_sends_per_s", &self.max_sends_per_s),
            ("max_cpu_ms", &self.max_cpu_ms),
            ("max_host_calls", &self.max_host_calls),
            ("max_host_calls_per_s", &self.max_host_calls_per_s),
            ("max_log_bytes", &self.max_log_bytes),
            ("max_output_bytes", &self.max_output_bytes),
            ("max_open_sends", &self.max_open_sends),
        ];
        let said = numbers.into_iter().filter_map(|(name, most)| Some((name, most.as_ref()?.0.clone())));
        let egress = match &self.egress[..] {
            [] => None,
            [any] if any == "any" => Some(Value::Null),
            [nothing] if nothing == "nothing" => Some(json!([])),
            places => Some(json!(places)),
        };
        let signature = self.require_signature.map(|required| ("require_signature", json!(required)));
        said.chain(egress.map(|egress| ("egress", egress)))
            .chain(signature)
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

fn shown(tenant: &str, bounds: &Value) -> String {
    let bound = |(name, title): (&'static str, &'static str)| {
        let most = match &bounds[name] {
            Value::Null => "no limit".to_owned(),
            Value::Bool(true) => "yes".to_owned(),
            Value::Bool(false) => "no".to_owned(),
            Value::Array(places) if places.is_empty() => "nothing".to_owned(),
            Value::Array(places) => places.iter().map(|place| text(place, "")).collect::<Vec<_>>().join(" "),
            most => text(most, ""),
        };
        (title, most)
    };
    let paused = if bounds["paused"] == json!(true) { "yes" } else { "no" };
    let rows = [("tenant", tenant.to_owned())].into_iter().chain(NAMES.into_iter().map(bound));
    pairs(&rows.chain([("paused", paused.to_owned())]).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_none() {
        let parsed = |text: &str| text.parse::<Most>().unwrap().0;
        let wanted = [json!(5), json!(0), json!(0.5), json!(null), json!(u64::MAX)];
        assert_eq!(["5", "0", "0.5", "none", "18446744073709551615"].map(parsed), wanted);
        for wrong in ["", "many", "NaN", "inf", "5 "] {
            assert!(wrong.parse::<Most>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_was_said_is_changed() {
        assert!(Limits::default().changes().is_empty());
        let said = Limits {
            max_queued: Some(Most(json!(7))),
            max_modules: Some(Most(Value::Null)),
            egress: vec!["a.test".to_owned(), "*.b.test".to_owned()],
            require_signature: Some(true),
            ..Limits::default()
        };
        let wanted = json!({ "max_queued": 7, "max_modules": null, "egress": ["a.test", "*.b.test"],
            "require_signature": true });
        assert_eq!(Value::Object(said.changes()), wanted);
        for (word, wanted) in [("any", json!(null)), ("nothing", json!([]))] {
            let said = Limits { egress: vec![word.to_owned()], ..Limits::default() };
            assert_eq!(said.changes()["egress"], wanted);
        }
    }

    #[test]
    fn no_limit_is_said_so() {
        let bounds =
            json!({ "max_running": 0, "egress": ["a.test", "b.test"], "require_signature": false, "paused": true });
        let words = shown("shop", &bounds);
        let line = |title: &str| words.lines().find_map(|line| line.strip_prefix(title)).map(str::trim);
        for (title, value) in [
            ("runs at once", "0"),
            ("modules", "no limit"),
            ("may send to", "a.test b.test"),
            ("signatures needed", "no"),
            ("paused", "yes"),
        ] {
            assert_eq!(line(title), Some(value), "{words}");
        }
    }
}
