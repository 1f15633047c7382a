//! `deedbox deploy`: uploads a component and deploys its activities.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::client::Client;
use super::failure::Failure;
use super::module::read_signature;
use super::output::{Output, text};
use super::settings::{self, Remote};
use crate::policy::Policy;

#[derive(Debug, Args)]
pub(super) struct Deploy {
    /// The component.
    #[arg(value_name = "FILE.wasm")]
    file: PathBuf,
    /// Deploy this activity only. The only activity of a component may be given another name by it.
    #[arg(long)]
    name: Option<String>,
    /// The policy: retries, time-outs, egress, credentials.
    #[arg(long, value_name = "FILE.toml")]
    policy: Option<PathBuf>,
    /// A signature of the component, in a file: 64 bytes, or the same as hexadecimal digits or in base64.
    #[arg(long, value_name = "FILE")]
    signature: Option<PathBuf>,
    /// The number that the version must get. When the newest is this very deployment already, nothing is done.
    #[arg(long, value_name = "N")]
    as_version: Option<u32>,
    #[command(flatten)]
    remote: Remote,
}

impl Deploy {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let client = Client::tenant(&self.remote)?;
        let policy = match &self.policy {
            Some(file) => Some(read_policy(file).await?),
            None => None,
        };
        let module = upload(&client, output, &self.file, self.signature.as_deref()).await?;
        let mut deployed = Vec::new();
        for (name, export) in chosen(&module, self.name.as_deref())? {
            let mut body = json!({ "module": module["digest"], "export": export });
            if let Some(policy) = &policy {
                body["policy"] = policy.clone();
            }
            if let Some(number) = self.as_version {
                body["version"] = json!(number);
            }
            let version = client.put(&["v1", "activities", &name], &body).await?;
            output.note(&format!("deployed {name} version {}", text(&version, "/version")));
            deployed.push(version);
        }
        let first = deployed.first().map(|version| text(version, "/activity")).unwrap_or_default();
        output.show(&json!({ "module": module, "activities": deployed }), |_| {
            format!("Start it with: deedbox start {first} --input JSON --wait")
        })
    }
}

/// Uploads a component, with a signature if there is one, and says what the server makes of it.
pub(super) async fn upload(
    client: &Client,
    output: &Output,
    file: &Path,
    signature: Option<&Path>,
) -> anyhow::Result<Value> {
    let component = settings::read(file).await?;
    let signature = match signature {
        Some(file) => Some(read_signature(file).await?.to_hex()),
        None => None,
    };
    output.note(&format!("uploading {} ({} bytes)", file.display(), component.len()));
    let bar = !output.is_json() && std::io::stderr().is_terminal();
    let total = component.len();
    let sent = move |sent| progress(bar, sent, total);
    let module = client.upload(component.into(), signature.as_deref(), sent).await?;
    output.note(&format!("module {}", text(&module, "/digest")));
    for warning in module["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        output.note(&format!("warning: {warning}"));
    }
    Ok(module)
}

/// Shown on one line of the terminal.
fn progress(bar: bool, sent: usize, total: usize) {
    if bar {
        let end = if sent >= total { "; the server compiles it\n" } else { "" };
        let percent = sent.saturating_mul(100) / total.max(1);
        // Progress that cannot be shown is no reason to stop.
        let _ = write!(std::io::stderr(), "\r{percent:3} % uploaded{end}");
    }
}

/// Reads a policy and checks it before anything is uploaded.
async fn read_policy(file: &Path) -> anyhow::Result<Value> {
    let wrong = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    let text = String::from_utf8(settings::read(file).await?).map_err(|error| wrong(error.to_string()))?;
    let policy: Value = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    Policy::parse(&policy.to_string()).map_err(wrong)?;
    Ok(policy)
}

/// A policy as it would be deployed.
pub(super) async fn checked_policy(file: &Path) -> anyhow::Result<Policy> {
    let value = read_policy(file).await?;
    Ok(Policy::parse(&value.to_string()).map_err(Failure::Usage)?)
}

/// The names to deploy with the exports they stand for.
fn chosen(module: &Value, name: Option<&str>) -> anyhow::Result<Vec<(String, String)>> {
    let activities = module["activities"].as_array().map(Vec::as_slice).unwrap_or_default();
    let exports: Vec<String> = activities.iter().map(|activity| text(activity, "/name")).collect();
    match (name, exports.as_slice()) {
        (_, []) => Err(Failure::Usage("the component has no activity".to_owned()).into()),
        (None, all) => Ok(all.iter().map(|export| (export.clone(), export.clone())).collect()),
        (Some(name), [only]) => Ok(vec![(name.to_owned(), only.clone())]),
        (Some(name), all) if all.iter().any(|export| export == name) => Ok(vec![(name.to_owned(), name.to_owned())]),
        (Some(name), all) => {
            Err(Failure::Usage(format!("the component has no activity `{name}`, only: {}", all.join(", "))).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_activity_is_deployed_unless_one_is_named() {
        let two = json!({ "activities": [{ "name": "a" }, { "name": "b" }] });
        let pair = |name: &str, export: &str| (name.to_owned(), export.to_owned());
        assert_eq!(chosen(&two, None).unwrap(), [pair("a", "a"), pair("b", "b")]);
        assert_eq!(chosen(&two, Some("b")).unwrap(), [pair("b", "b")]);
        assert!(chosen(&two, Some("c")).unwrap_err().to_string().contains("a, b"));
        let one = json!({ "activities": [{ "name": "a" }] });
        assert_eq!(chosen(&one, Some("other")).unwrap(), [pair("other", "a")]);
        assert!(chosen(&json!({ "activities": [] }), None).is_err());
    }

    #[tokio::test]
    async fn a_policy_is_read_from_toml_and_checked() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("policy.toml");
        std::fs::write(&file, "[retry]\nmax_attempts = 5\n[egress]\nallow = [\"https://api.example.com\"]\n").unwrap();
        assert_eq!(read_policy(&file).await.unwrap()["retry"]["max_attempts"], 5);
        let rules = "[egress]\nallow = [\"https://a.test\", { host = \"*.b.test\", methods = [\"POST\"], path_prefix = \"/v1\" }]\n";
        std::fs::write(&file, rules).unwrap();
        assert_eq!(read_policy(&file).await.unwrap()["egress"]["allow"][1]["path_prefix"], "/v1");
        std::fs::write(&file, rules.replace("POST", "post")).unwrap();
        assert!(read_policy(&file).await.unwrap_err().to_string().contains("`post`"));
        std::fs::write(&file, "[retry]\nmax_atempts = 5\n").unwrap();
        let error = read_policy(&file).await.unwrap_err().to_string();
        assert!(error.contains("max_atempts") && error.contains("policy.toml"), "{error}");
    }
}
