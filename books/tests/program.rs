//! The program itself: its one line of output, SIGTERM, and books that survive SIGKILL.
//! It must never leave a program behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use common::{BODY, LONG, exchange, request, send};
use deedbox_books::{Behaviour, Books, Entry};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

#[tokio::test]
async fn what_was_applied_before_a_kill_is_booked_and_its_key_stays_settled() {
    let dir = tempfile::tempdir().unwrap();
    let (mut program, books) = start(dir.path(), &[]).await;
    books.script(&[Behaviour::HoldAfterApply]).await.unwrap();
    let _held = send(books.address, &request("POST", "/v1/charges", "k", BODY)).await;
    books.wait_for_applied(1, LONG).await.unwrap();
    program.kill().await.unwrap();
    assert_eq!(Entry::read_all(dir.path()).unwrap().len(), 1);

    let (mut program, books) = start(dir.path(), &[]).await;
    let seen = exchange(books.address, &request("POST", "/v1/charges", "k", BODY)).await;
    assert_eq!(
        (seen.status, seen.header("idempotent-replayed"), &seen.json()["id"]),
        (201, Some("true"), &serde_json::json!("ch_1"))
    );
    program.kill().await.unwrap();
    assert_eq!(Entry::read_all(dir.path()).unwrap().len(), 1);
}

#[tokio::test]
async fn sigterm_ends_it_well_even_while_it_holds_a_request() {
    let dir = tempfile::tempdir().unwrap();
    let (mut program, books) = start(dir.path(), &["--keyless"]).await;
    books.script(&[Behaviour::HoldBeforeApply]).await.unwrap();
    let _held = send(books.address, &request("POST", "/v1/charges", "k", BODY)).await;
    books.wait_for_arrivals(1, LONG).await.unwrap();
    let pid = program.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    let status = tokio::time::timeout(LONG, program.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(Entry::read_all(dir.path()).unwrap(), []);
}

async fn start(dir: &Path, switches: &[&str]) -> (Child, Books) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_deedbox-books"))
        .arg("--dir")
        .arg(dir)
        .args(switches)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let line: serde_json::Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    let address: SocketAddr = line["address"].as_str().unwrap().parse().unwrap();
    assert!(address.ip().is_loopback());
    (program, Books { address })
}
