//! A charge with nothing but `curl`, by the very commands that the README shows.

use std::path::Path;

use serde_json::{Value, json};
use tokio::process::Command;

use super::program::{Ended, Up, component_file, finish, place, provider};

const README: &str = include_str!("../../../README.md");
const SECTION: &str = "## With curl alone";
/// What the README's commands are about, in their order.
const STEPS: [&str; 6] = ["/v1/modules", "/v1/activities/charge-once", "/runs", "?wait=", "/effects", "/effects"];

/// The commands of the README's section, each of which may go over several lines.
fn commands() -> Vec<String> {
    let section = README.split_once(SECTION).unwrap_or_else(|| panic!("the README has no section `{SECTION}`")).1;
    let section = section.split("\n## ").next().unwrap();
    let script = section.split_once("```sh\n").unwrap().1.split("```").next().unwrap();
    let mut commands: Vec<String> = Vec::new();
    for line in script.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match commands.last_mut().filter(|last| last.ends_with('\\')) {
            Some(last) => last.extend(["\n", line]),
            None => commands.push(line.to_owned()),
        }
    }
    commands
}

struct Shell<'a> {
    up: &'a Up,
    dir: &'a Path,
    variables: Vec<(&'static str, String)>,
}

impl Shell<'_> {
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(self.dir).kill_on_drop(true).env("no_proxy", "*");
        command.env("DEEDBOX_URL", &self.up.address).env("DEEDBOX_TOKEN", &self.up.token);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    async fn run(&self, line: &str) -> Ended {
        finish(self.command(line)).await
    }
}

async fn check_curl() {
    let mut version = Command::new("bash");
    version.args(["-c", "curl --json x --version"]);
    let found = finish(version).await;
    assert_eq!(found.code, Some(0), "curl 7.82 or newer must be installed, as the README says: {}", found.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_alone_uploads_deploys_starts_waits_and_reads_the_ledger() {
    check_curl().await;
    let place = place();
    let (origin, books) = provider(place.path()).await;
    let component = component_file(place.path(), "charge_once.wasm");
    let up = Up::start(&place.path().join("d")).await;
    let mut shell = Shell { up: &up, dir: place.path(), variables: vec![("PROVIDER", origin.clone())] };
    let commands = commands();
    for (command, step) in commands.iter().zip(STEPS) {
        assert!(command.starts_with("curl ") && command.contains(step), "not about `{step}`: {command}");
    }
    let Ok([upload, deploy, start, wait, effects, witness]) = <[String; 6]>::try_from(commands) else {
        panic!("the README's section has other commands than this test knows");
    };
    let built = "@target/guests/components/charge_once.wasm";
    assert!(upload.contains(built), "{upload}");
    let upload = upload.replace(built, &format!("@{component}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();

    let uploaded = shell.run(&upload).await.json();
    shell.variables.push(("MODULE", text(&uploaded["digest"])));
    let version = shell.run(&deploy).await.json();
    assert_eq!((&version["version"], &version["policy"]["providers"][&origin]), (&json!(1), &json!("stripe")));
    let started = shell.run(&start).await.json();
    shell.variables.push(("RUN", text(&started["run_id"])));
    let ended = shell.run(&wait).await.json();
    assert_eq!(ended["output"], json!({ "outcome": "charged", "charge_id": "ch_1" }));
    let key = books.applied().await.unwrap()[0].key.clone().unwrap();
    assert_eq!(shell.run(&effects).await.json()["items"][0]["wire_key"], json!(key));
    assert_eq!(shell.run(&witness).await.json()["effects"][0]["providerKey"], json!(key));

    let mut refused = shell.command(&upload);
    refused.env("DEEDBOX_TOKEN", "wrong");
    let refused = finish(refused).await;
    assert_eq!(refused.code, Some(22), "{refused:?}");
    assert_eq!(serde_json::from_str::<Value>(&refused.out).unwrap()["error"], "unauthenticated");
    up.stop("TERM").await;
}
