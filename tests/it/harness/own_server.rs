//! A PostgreSQL server of one test's own, which it may stop, kill and start again, and which then goes on with its data.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use deedbox::postgres::{Server, Settings, USER};
use deedbox::store::{self, Store};

use super::database::{self, Database};
use super::proxy::Target;
use super::shared;

#[derive(Debug)]
pub struct OwnServer {
    dir: PathBuf,
    /// None while it is stopped.
    server: Option<Server>,
    target: Target,
    bin_dir: PathBuf,
}

impl OwnServer {
    pub async fn start() -> Self {
        Self::start_in(database::directory()).await
    }

    /// With its data below a directory that PostgreSQL's user can reach.
    pub async fn start_in(dir: PathBuf) -> Self {
        let server = start(&dir).await.unwrap();
        let target = Target::of_url(&server.url("postgres"));
        Self { dir, target, bin_dir: server.bin_dir().to_owned(), server: Some(server) }
    }

    /// A database with the schema and nothing in it.
    pub async fn migrated(&self, name: &str) -> Database {
        let server = self.server.as_ref().unwrap();
        store::create_database(&server.url("postgres"), name).await.unwrap();
        let database = Database { url: server.url(name) };
        let store = Store::connect(&database.url, 2).unwrap();
        store.migrate().await.unwrap();
        shared::found(&store).await;
        store.close().await;
        database
    }

    /// A database of it, for as long as it runs.
    pub fn database(&self, name: &str) -> Database {
        Database { url: self.server.as_ref().unwrap().url(name) }
    }

    /// Where it listens, whether it runs or not.
    pub fn target(&self) -> Target {
        self.target.clone()
    }

    pub fn pgdata(&self) -> PathBuf {
        self.dir.join("pgdata")
    }

    /// Whether its process runs.
    pub async fn is_up(&self) -> bool {
        let Some(server) = &self.server else { return false };
        tokio::time::timeout(std::time::Duration::ZERO, server.ended()).await.is_err()
    }

    /// One of PostgreSQL's programs, as the user whose the data are.
    pub fn program(&self, name: &str) -> Command {
        let data = self.pgdata().metadata().unwrap();
        let us = tempfile::tempfile().and_then(|file| file.metadata()).unwrap().uid();
        let program = self.bin_dir.join(name);
        let mut command = if data.uid() == us {
            Command::new(program)
        } else {
            let mut other = Command::new("setpriv");
            other.args([format!("--reuid={}", data.uid()), format!("--regid={}", data.gid())]);
            other.arg("--clear-groups").arg(program);
            other
        };
        command.current_dir("/");
        command
    }

    /// The fast shutdown: sessions are ended, what has committed is on the disk.
    pub async fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop().await;
        }
    }

    /// SIGKILL. Its sessions' processes see it by themselves, and end.
    pub async fn kill(&mut self) {
        let server = self.server.take().unwrap();
        let killed = Command::new("sh").args(["-c", &format!("kill -KILL {}", server.pid())]).status();
        assert!(killed.unwrap().success());
        server.ended().await;
    }

    pub async fn start_again(&mut self) {
        self.server = Some(start(&self.dir).await.unwrap());
    }

    /// Whether transactions may write from now on.
    pub async fn set_read_only(&self, read_only: bool) {
        let database = self.database("postgres");
        // Two statements: the first must not stand in a transaction of several.
        database.execute(&format!("alter system set default_transaction_read_only = {read_only}")).await;
        database.execute("select pg_reload_conf()").await;
    }

    /// Stops it, and removes all that it had.
    pub async fn end(mut self) {
        self.stop().await;
        std::fs::remove_dir_all(self.dir.parent().unwrap()).unwrap();
    }
}

/// The superuser of every such server.
pub fn user() -> &'static str {
    USER
}

async fn start(dir: &Path) -> Result<Server, deedbox::postgres::Error> {
    Server::start(Settings { data_dir: dir.to_owned(), bin_dir: None }).await
}
