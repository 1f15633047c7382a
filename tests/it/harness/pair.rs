//! Two PostgreSQL servers: whatever the first has confirmed, the second has on its disk. The first can be lost for good,
//! and the second take its place.

use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::chown;
use std::process::Command;
use std::time::{Duration, Instant};

use super::database;
use super::own_server::{OwnServer, user};
use super::proxy::Target;

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Pair {
    pub primary: OwnServer,
    pub standby: OwnServer,
}

impl Pair {
    /// Both run, and a commit waits for the standby.
    pub async fn start() -> Self {
        let primary = OwnServer::start().await;
        let standby = follow(&primary).await;
        let database = primary.database("postgres");
        database.execute("alter system set synchronous_standby_names = '*'").await;
        database.execute("alter system set synchronous_commit = on").await;
        database.execute("select pg_reload_conf()").await;
        let pair = Self { primary, standby };
        pair.until_in_step().await;
        pair
    }

    async fn until_in_step(&self) {
        let mut connection = self.primary.database("postgres").connect().await;
        let give_up = Instant::now() + PATIENCE;
        let state = "select coalesce(max(sync_state), 'none') from pg_stat_replication";
        while sqlx::query_scalar::<_, String>(state).fetch_one(&mut connection).await.unwrap() != "sync" {
            assert!(Instant::now() < give_up, "the standby does not follow");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// SIGKILL, for good.
    pub async fn lose_primary(&mut self) {
        self.primary.kill().await;
    }

    /// Makes the standby a server of its own; it can be written to when this returns.
    pub async fn promote(&self) {
        let mut command = self.standby.program("pg_ctl");
        command.args(["promote", "-w", "-D"]).arg(self.standby.pgdata());
        finish(command).await;
    }

    pub async fn end(self) {
        self.standby.end().await;
        self.primary.end().await;
    }
}

/// A server that has all of another's data and goes on with its changes.
async fn follow(primary: &OwnServer) -> OwnServer {
    let dir = database::directory();
    std::fs::create_dir(&dir).unwrap();
    let owner = primary.pgdata().metadata().unwrap();
    chown(&dir, Some(owner.uid()), Some(owner.gid())).unwrap();
    let mut command = primary.program("pg_basebackup");
    let Target::Unix(socket) = primary.target() else { unreachable!("it listens on a socket") };
    command.arg("-h").arg(socket.parent().unwrap()).args(["-U", user(), "-D"]).arg(dir.join("pgdata"));
    command.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--no-password"]);
    finish(command).await;
    OwnServer::start_in(dir).await
}

async fn finish(mut command: Command) {
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
