//! Hooks on the command line.

use serde_json::json;

use super::program::{Up, component_file, finish_with, place};
use crate::api::client::Client;
use crate::api::hooks::github;

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_is_put_from_a_file_and_its_deliveries_are_looked_at() {
    let place = place();
    let up = Up::start(&place.path().join("d")).await;
    let component = component_file(place.path(), "deedbox_test_guests.wasm");
    up.run(&["deploy", &component, "--name", "noop"]).await.well();
    finish_with(up.command(&["secret", "set", "forge"]), "s3cret\n").await.well();
    assert!(up.run(&["hook"]).await.well().contains("no hooks"));
    let file = place.path().join("build.toml");
    std::fs::write(&file, "[verify]\nscheme = \"github\"\nsecret = \"forge\"\n[start]\nactivity = \"noop\"\n").unwrap();
    let put = up.run(&["hook", "put", "build", file.to_str().unwrap()]).await.well();
    assert!(put.contains("/v1/hooks/default.build"), "{put}");
    let listed = up.run(&["hook", "list"]).await.well();
    assert!(listed.contains("build") && listed.contains("github") && listed.contains("a run of noop"), "{listed}");
    assert!(up.run(&["hook", "show", "build"]).await.well().contains("\"forge\""));
    assert!(up.run(&["hook", "deliveries", "build"]).await.well().contains("no deliveries"));

    let answer = github("s3cret", "delivery-1", "{}").to(&Client::new(&up.address, None), "default.build").await;
    let run = answer.expect(202)["run_id"].as_str().unwrap().to_owned();
    let table = up.run(&["hook", "deliveries", "build"]).await.well();
    assert!(table.contains("delivery-1") && table.contains("accepted") && table.contains(&run), "{table}");
    assert_eq!(up.ask(&["hook", "deliveries", "build"]).await["items"][0]["tries"], json!(1));

    std::fs::write(&file, "[verify]\nscheme = \"github\"\nsecret = \"none\"\n[start]\nactivity = \"noop\"\n").unwrap();
    let refused = up.run(&["hook", "put", "build", file.to_str().unwrap()]).await.failed(1);
    assert!(refused.contains("no secret `none`"), "{refused}");
    assert!(up.run(&["hook", "put", "build", "/no/such/file"]).await.failed(2).contains("/no/such/file"));
    up.run(&["hook", "rm", "build"]).await.well();
    assert!(up.run(&["hook", "rm", "build"]).await.failed(1).contains("no such hook"));
    up.stop("TERM").await;
}
