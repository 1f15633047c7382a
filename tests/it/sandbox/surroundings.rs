//! What a guest sees of where it runs: nothing of the machine, and of the time no more than it is told.

use std::path::Path;

use serde_json::{Value, json};

use super::same_run::outputs_of_two_attempts;
use super::world_with;
use crate::api::client::Client;
use crate::cli::program::{Running, deedbox, place};
use crate::harness::{Database, TENANT, World, component, shared};
use crate::wat_component::WatComponent;

const GUESTS: &str = "deedbox_test_guests_wasi_http.wasm";

/// In the node's environment, arguments, standard input and files; and nowhere else.
const CANARY: &str = "canary-5b1c2e90";

/// What a program would look at to know where it is.
fn paths(dir: &Path) -> Vec<String> {
    let own = dir.join("secret.txt").display().to_string();
    let fixed = [
        "/",
        ".",
        "..",
        "",
        "/etc/passwd",
        "/etc/hostname",
        "/etc/resolv.conf",
        "/proc/self/environ",
        "/proc/self/cmdline",
        "/proc/sys/kernel/hostname",
        "/proc/self/cwd",
        "/dev/stdin",
        "/dev/urandom",
        "/tmp",
        "secret.txt",
        "../../etc/passwd",
    ];
    fixed.into_iter().map(str::to_owned).chain([own]).collect()
}

/// A real node whose surroundings are full of canaries, and what a guest in it can find out.
async fn seen_by_a_guest() -> (Value, Running, tempfile::TempDir) {
    let (place, database) = (place(), Database::fresh().await);
    let dir = place.path().to_owned();
    std::fs::write(dir.join("secret.txt"), CANARY).unwrap();
    let mut command = deedbox(&["--json", "up", "--listen", "127.0.0.1:0", "--database-url", &database.url]);
    command.arg("--data-dir").arg(dir.join(CANARY)).current_dir(&dir);
    command.arg("--master-key-file").arg(shared::master_key_file());
    command.env("CANARY", CANARY).env("PGPASSWORD", CANARY).stdin(std::fs::File::open(dir.join("secret.txt")).unwrap());
    let mut running = Running::start(command, dir.join("log"));
    let said: Value = serde_json::from_str(&running.line().await).unwrap();
    let text = |name: &str| said[name].as_str().unwrap().to_owned();
    let client = Client::new(&text("address"), Some(text("token")));
    let module = client.upload(component(GUESTS)).await.expect(201)["digest"].clone();
    client.put("/v1/activities/look-around", &json!({ "module": module, "policy": {} })).await.expect(201);
    let input = json!({ "input": { "paths": paths(&dir) } });
    let run = client.post("/v1/activities/look-around/runs", &input).await.expect(201);
    let run = client.get(&format!("/v1/runs/{}?wait=30", run["run_id"].as_str().unwrap())).await.expect(200);
    assert_eq!(run["state"], "completed", "{run}");
    (run["output"].clone(), running, place)
}

/// F-F17. Asked of a real process, with something to be seen in each place.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_sees_nothing_of_the_machine() {
    let (mut seen, running, place) = seen_by_a_guest().await;
    let paths_seen = seen["paths"].take();
    let nothing = json!({
        "env": [], "args": [], "cwd": null, "std_env": 0, "std_args": [], "stdin": "", "terminals": [false, false, false],
        "preopens": [], "paths": null,
    });
    assert_eq!(seen, nothing);
    let asked = paths(place.path());
    let results = paths_seen.as_object().unwrap();
    assert_eq!(results.len(), asked.len());
    for path in asked {
        let error = results[&path]["Err"].as_str().unwrap_or_else(|| panic!("{path} was opened: {results:?}"));
        assert!(!error.contains(CANARY), "{error}");
    }
    if cfg!(target_os = "linux") {
        // The canaries were where a guest would have found them.
        for name in ["environ", "cmdline"] {
            let held = std::fs::read(format!("/proc/{}/{name}", running.id())).unwrap();
            assert!(String::from_utf8_lossy(&held).contains(CANARY), "{name}");
        }
    }
    running.signal("TERM").await;
    assert_eq!(running.end().await.code, Some(0));
}

async fn world_of(activities: &[&str], resolution_us: u64) -> World {
    let world = world_with(|config| config.host.clock_resolution_us = resolution_us).await;
    for activity in activities {
        world.deploy_from(GUESTS, activity, "stripe", json!({})).await;
    }
    world
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// Both clocks tell their resolution, move by whole multiples of it, and do not shorten a sleep.
#[tokio::test(flavor = "multi_thread")]
async fn clocks_tell_time_in_steps_of_the_stated_resolution() {
    for resolution_us in [1_000, 7_000] {
        let world = world_of(&["watch"], resolution_us).await;
        let step = resolution_us * 1_000;
        let before = chrono::Utc::now().timestamp_nanos_opt().unwrap().unsigned_abs();
        let run = world.start("watch", json!({ "readings": 6, "sleep_ns": 3 * step })).await;
        world.work().await;
        let after = chrono::Utc::now().timestamp_nanos_opt().unwrap().unsigned_abs();
        let told = world.output(run).await;
        assert_eq!((&told["monotonic_resolution"], &told["wall_resolution"]), (&json!(step), &json!(step)));
        for clock in ["monotonic", "wall"] {
            let readings = numbers(&told[clock]);
            assert_eq!(readings.len(), 6, "{told}");
            assert!(readings.iter().all(|reading| reading % step == 0), "{told}");
            assert!(readings.windows(2).all(|pair| pair[0] < pair[1]), "{told}");
        }
        // Real, but for the step; and one that began with the instance tells nothing of the machine's.
        assert!(numbers(&told["wall"]).iter().all(|wall| (before - step..=after).contains(wall)), "{told}");
        assert!(numbers(&told["monotonic"])[0] < 60_000_000_000, "{told}");
        for slept in ["slept", "slept_until"] {
            assert!(told[slept].as_u64().unwrap() >= 3 * step, "{told}");
        }
    }
}

/// Every source of chance is the run's own: the same in each attempt, another in another run, fresh where that is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn all_sources_of_chance_are_the_runs_own() {
    let world = world_of(&["draw"], 1_000).await;
    let run = world.start("draw", json!({})).await;
    let [first, second] = outputs_of_two_attempts(&world, run).await;
    assert_eq!(first, second);
    assert_ne!(first["secure"], first["insecure"]);
    let other = world.start("draw", json!({})).await;
    world.work().await;
    let other = world.output(other).await;
    world.deploy_from(GUESTS, "draw", "stripe", json!({ "randomness": "fresh" })).await;
    let fresh = world.start("draw", json!({})).await;
    let fresh = outputs_of_two_attempts(&world, fresh).await;
    for source in ["secure", "insecure", "seed"] {
        assert_ne!(first[source], other[source], "{source}");
        assert_ne!(fresh[0][source], fresh[1][source], "{source}");
    }
}

/// A guest that exits has not returned, whatever status it names; its run is tried again like any that trapped.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_exits_ends_its_attempt_and_nothing_else() {
    let world = world_of(&["leave"], 1_000).await;
    world.deploy_from(GUESTS, "leave", "stripe", json!({ "retry": { "max_attempts": 2 } })).await;
    for status in [0, 1, 3] {
        let run = world.start("leave", json!({ "status": status })).await;
        world.work().await;
        assert_eq!(world.outcomes(run).await, ["trap", "trap"], "{status}");
        let failure = world.failure(run).await;
        assert!(failure["message"].as_str().unwrap().contains("exit"), "{failure}");
    }
}

/// What no guest needs is not offered: neither the machine's time zone, nor environments of other kinds.
#[tokio::test(flavor = "multi_thread")]
async fn what_tells_of_the_machine_is_not_linked() {
    let world = World::keyed().await;
    let timezone = r#"(import "wasi:clocks/timezone@0.2.0" (instance
        (export "utc-offset" (func (param "when" (tuple u64 u32)) (result s32)))))"#;
    let config = r#"(import "wasi:config/runtime@0.2.0" (instance
        (export "get" (func (param "key" string) (result string)))))"#;
    for (outer, named) in [(timezone, "wasi:clocks/timezone"), (config, "wasi:config/runtime")] {
        let bytes = WatComponent { outer: outer.to_owned(), ..WatComponent::default() }.bytes();
        let refused = world.node.registry().upload(TENANT, bytes.into()).await.unwrap_err().to_string();
        assert!(refused.contains(named), "{refused}");
    }
}
