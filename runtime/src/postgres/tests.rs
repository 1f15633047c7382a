//! The launcher against a real PostgreSQL, and against programs that fail on purpose. They run as root and as an ordinary user.
//! They must never signal a process that they did not start.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::account::Account;
use super::layout::Layout;
use super::{Error, Server, Settings, find};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);
const MAKES_DATA: &str = "for last; do :; done; echo 15 > \"$last/PG_VERSION\"";
/// Names the data directory to the process that `a_killed_parent_takes_its_server_with_it` starts and kills.
const PARENT_DIR: &str = "DEEDBOX_TEST_POSTGRES_PARENT_DIR";

/// Programs that do nothing but what the test wants, in the shape of an installation. Written by another process: a file that we
/// have open for writing cannot be executed, and a concurrent test's fork would keep it open.
pub(super) fn fake_installation(dir: &Path, version: u32, initdb: &str, postgres: &str) {
    std::fs::create_dir_all(dir).unwrap();
    let versioned = format!("[ \"$1\" = --version ] && echo 'postgres (PostgreSQL) {version}.1' && exit\n{postgres}");
    for (name, script) in [("initdb", initdb), ("pg_ctl", "exit 1"), ("postgres", versioned.as_str())] {
        let write = "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod 755 \"$1\"";
        let status = Command::new("sh").args(["-c", write, "sh"]).arg(dir.join(name)).arg(script).status().unwrap();
        assert!(status.success());
    }
}

#[tokio::test]
async fn a_server_is_private_durable_and_keeps_its_data_over_a_restart() {
    let dir = enterable();
    let settings = Settings { data_dir: dir.path().join("a b%41ü/data"), bin_dir: None };
    let server = Server::start(settings.clone()).await.unwrap();
    assert_eq!(
        query(&server, "select current_user, current_setting('fsync'), current_setting('listen_addresses')"),
        "deedbox|on|"
    );
    assert_eq!(query(&server, "show server_encoding"), "UTF8");
    query(&server, "create table kept as select 42 as answer");
    server.stop().await;
    let server = Server::start(settings.clone()).await.unwrap();
    assert_eq!(query(&server, "select answer from kept"), "42");
    server.stop().await;
    for private in ["pgdata", "socket"] {
        let mode = settings.data_dir.join(private).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{private}");
    }
}

#[tokio::test]
async fn a_second_server_of_the_same_directory_is_refused_until_the_first_is_gone() {
    let dir = enterable();
    let settings = Settings { data_dir: dir.path().join("data"), bin_dir: None };
    let server = Server::start(settings.clone()).await.unwrap();
    let words = Server::start(settings.clone()).await.unwrap_err().to_string();
    assert!(words.contains(&format!("process {}", std::process::id())), "{words}");
    assert_eq!(query(&server, "select 1"), "1");
    drop(server);
    let server = start_once_free(&settings).await;
    assert_eq!(query(&server, "select 1"), "1");
    server.stop().await;
}

#[tokio::test]
async fn a_data_directory_that_is_no_place_for_a_socket_gets_one_elsewhere_that_is_remembered() {
    let dir = enterable();
    for name in ["long-".repeat(30), "a,\"b\"".to_owned()] {
        let settings = Settings { data_dir: dir.path().join(name), bin_dir: None };
        let mut urls = Vec::new();
        for _ in 0..2 {
            let server = Server::start(settings.clone()).await.unwrap();
            assert_eq!(query(&server, "select 1"), "1");
            urls.push(server.url("postgres"));
            server.stop().await;
        }
        assert_eq!(urls[0], urls[1]);
        let socket_dir = PathBuf::from(std::fs::read_to_string(settings.data_dir.join("socket-path")).unwrap());
        assert_eq!(socket_dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::remove_dir_all(socket_dir).unwrap();
    }
}

#[tokio::test]
async fn a_server_that_was_left_behind_is_stopped_and_replaced() {
    let dir = enterable();
    let settings = Settings { data_dir: dir.path().join("data"), bin_dir: None };
    let server = Server::start(settings.clone()).await.unwrap();
    query(&server, "create table kept as select 42 as answer");
    server.stop().await;
    let left = leave_behind(&settings);
    let server = Server::start(settings).await.unwrap();
    left.await.unwrap();
    assert_eq!(query(&server, "select answer from kept"), "42");
    server.stop().await;
}

#[tokio::test]
async fn a_killed_server_is_noticed_and_recovers() {
    let dir = enterable();
    let settings = Settings { data_dir: dir.path().join("data"), bin_dir: None };
    let server = Server::start(settings.clone()).await.unwrap();
    query(&server, "create table kept as select 42 as answer");
    kill(server.pid());
    tokio::time::timeout(LONG, server.ended()).await.unwrap();
    let server = Server::start(settings.clone()).await.unwrap();
    assert_eq!(query(&server, "select answer from kept"), "42");
    server.stop().await;
}

#[tokio::test]
async fn a_note_that_names_a_stranger_is_no_obstacle() {
    let dir = enterable();
    let settings = Settings { data_dir: dir.path().join("data"), bin_dir: None };
    Server::start(settings.clone()).await.unwrap().stop().await;
    let note = format!("{}\n{}\n", std::process::id(), settings.data_dir.join("pgdata").display());
    std::fs::write(settings.data_dir.join("pgdata/postmaster.pid"), note).unwrap();
    let server = Server::start(settings).await.unwrap();
    assert_eq!(query(&server, "select 1"), "1");
    server.stop().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_killed_parent_takes_its_server_with_it() {
    let dir = enterable();
    let settings = Settings { data_dir: dir.path().join("data"), bin_dir: None };
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "postgres::tests::a_parent_that_waits_to_be_killed"])
        .env(PARENT_DIR, &settings.data_dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = until(|| std::fs::read_to_string(dir.path().join("data/ready")).ok().filter(|text| text.ends_with('\n')));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let process = Path::new("/proc").join(pid.trim());
    until(|| (!process.exists()).then_some(()));
    let log = std::fs::read_to_string(settings.data_dir.join("postgres.log")).unwrap();
    assert!(log.contains("received fast shutdown request"), "{log}");
}

#[tokio::test]
#[ignore = "started, and killed, by a_killed_parent_takes_its_server_with_it"]
#[allow(clippy::disallowed_methods, reason = "the only way to hand a path to a test in another process")]
async fn a_parent_that_waits_to_be_killed() {
    let Some(data_dir) = std::env::var_os(PARENT_DIR).map(PathBuf::from) else {
        return;
    };
    let server = Server::start(Settings { data_dir: data_dir.clone(), bin_dir: None }).await.unwrap();
    std::fs::write(data_dir.join("ready"), format!("{}\n", server.pid())).unwrap();
    tokio::time::timeout(LONG, server.ended()).await.unwrap();
}

#[tokio::test]
async fn data_of_another_version_is_refused_by_name() {
    let dir = enterable();
    let data_dir = dir.path().join("data");
    std::fs::create_dir_all(data_dir.join("pgdata")).unwrap();
    std::fs::write(data_dir.join("pgdata/PG_VERSION"), "11\n").unwrap();
    let words = Server::start(Settings { data_dir: data_dir.clone(), bin_dir: None }).await.unwrap_err().to_string();
    assert!(words.contains("made by PostgreSQL 11"), "{words}");
    std::fs::remove_file(data_dir.join("pgdata/PG_VERSION")).unwrap();
    let refused = Server::start(Settings { data_dir, bin_dir: None }).await;
    assert!(matches!(refused, Err(Error::NotData { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_failed_initdb_says_why_and_leaves_no_data() {
    let dir = enterable();
    let (data_dir, bin_dir) = (dir.path().join("data"), dir.path().join("bin"));
    let settings = Settings { data_dir: data_dir.clone(), bin_dir: Some(bin_dir.clone()) };
    fake_installation(&bin_dir, 15, "echo sorry; exit 1", "");
    let refused = Server::start(settings.clone()).await;
    assert!(matches!(&refused, Err(Error::Initdb { output }) if output == "sorry"), "{refused:?}");
    fake_installation(&bin_dir, 15, "echo 'HINT:  Check free disk space.' >&2; exit 1", "");
    let refused = Server::start(settings).await;
    assert!(matches!(refused, Err(Error::DiskFull { .. })), "{refused:?}");
    let server = Server::start(Settings { data_dir, bin_dir: None }).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_ends_or_never_gets_ready_is_explained_by_its_log() {
    let dir = enterable();
    let bin_dir = dir.path().join("bin");
    let settings = Settings { data_dir: dir.path().join("data"), bin_dir: Some(bin_dir.clone()) };
    fake_installation(&bin_dir, 15, MAKES_DATA, "echo 'FATAL:  no luck' >&2; exit 1");
    let refused = Server::start(settings.clone()).await;
    assert!(matches!(&refused, Err(Error::Exited { log }) if log == "FATAL:  no luck"), "{refused:?}");
    fake_installation(&bin_dir, 15, "", "echo 'PANIC:  could not write: No space left on device' >&2; exit 1");
    let refused = Server::start(settings.clone()).await;
    assert!(matches!(refused, Err(Error::DiskFull { .. })), "{refused:?}");
    fake_installation(&bin_dir, 15, "", "echo thinking; trap 'exit 0' INT; while :; do sleep 0.05; done");
    let refused = Server::start_within(settings.clone(), SHORT).await;
    assert!(matches!(&refused, Err(Error::NotReady { log, .. }) if log == "thinking"), "{refused:?}");
    assert!(Layout::open(&settings.data_dir).unwrap().lock().is_ok());
}

#[tokio::test]
async fn root_is_told_which_directory_keeps_the_servers_user_out() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = enterable();
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    let settings = Settings { data_dir: closed.join("data"), bin_dir: None };
    let refused = Server::start(settings.clone()).await;
    assert!(
        matches!(&refused, Err(Error::NotReachable { dir, .. }) if *dir == closed.canonicalize().unwrap()),
        "{refused:?}"
    );
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o711)).unwrap();
    Server::start(settings).await.unwrap().stop().await;
}

/// A temporary directory that every user can enter: as root, the server runs as somebody else.
fn enterable() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    dir
}

fn query(server: &Server, sql: &str) -> String {
    let psql = find::find(None, None).unwrap().postgres().with_file_name("psql");
    let output = Command::new(psql)
        .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, &server.url("postgres")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

async fn start_once_free(settings: &Settings) -> Server {
    let begun = Instant::now();
    loop {
        match Server::start(settings.clone()).await {
            Err(Error::InUse { .. }) if begun.elapsed() < LONG => tokio::time::sleep(Duration::from_millis(10)).await,
            other => return other.unwrap(),
        }
    }
}

/// A server of this directory without a deedbox; ready when this returns. The task ends with the server.
fn leave_behind(settings: &Settings) -> tokio::task::JoinHandle<()> {
    let layout = Layout::open(&settings.data_dir).unwrap();
    let account = Account::choose(&layout).unwrap();
    let postgres = find::find(None, None).unwrap().postgres();
    let socket_dir = layout.socket_dir(&account).unwrap();
    let pgdata = layout.pgdata();
    let (tell, told) = std::sync::mpsc::channel();
    let ends = tokio::task::spawn_blocking(move || {
        let mut command = account.command(&postgres, &layout);
        super::serve_arguments(&mut command, &layout, &socket_dir);
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        tell.send(child.id()).unwrap();
        child.wait().unwrap();
    });
    let pid = told.recv().unwrap();
    until(|| super::layout::is_ready(&pgdata, pid).then_some(()));
    ends
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

fn until<T>(mut check: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = check() {
            return value;
        }
        assert!(begun.elapsed() < LONG, "it did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}
