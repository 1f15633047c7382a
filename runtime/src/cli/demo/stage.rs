//! Everything that the story needs and that has to be cleared away afterwards.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;
use tokio::process::Command;

use super::super::client::Client;
use super::super::master_keys;
use super::super::seed;
use super::super::settings::{CACHE, MASTER_KEY};
use super::books::Books;
use super::children::Child;
use crate::gateway::vault::MasterKey;
use crate::postgres::Server;

/// A short lease, so that the story does not wait half a minute for a dead worker's.
const SETTINGS: &str = "[worker]\nlease_ms = 2000\npoll_ms = 100\n";
/// Lines of each log that are shown when the story fails.
const LOG_LINES: usize = 12;

pub(super) struct Stage {
    server: Option<Server>,
    children: Vec<Child>,
    database_url: String,
    api: String,
    /// Last, so that it is removed after everything that uses it has ended.
    place: Place,
}

impl Stage {
    /// Makes the directory, a temporary one unless it is given.
    pub(super) fn new(given: Option<PathBuf>) -> anyhow::Result<Self> {
        let place = Place::make(given)?;
        std::fs::write(place.path.join("deedbox.toml"), SETTINGS).context("cannot write the settings file")?;
        MasterKey::read_or_create(&place.path.join(MASTER_KEY))?;
        Ok(Self { server: None, children: Vec::new(), database_url: String::new(), api: String::new(), place })
    }

    /// Must not be dropped half-way: what makes the data directory would go on in a directory that is being removed.
    pub(super) async fn start_postgres(&mut self) -> anyhow::Result<()> {
        let (server, url) = seed::start_postgres(&self.place.path).await?;
        self.server = Some(server);
        self.database_url = url;
        Ok(())
    }

    pub(super) async fn start_books(&mut self, program: &Path) -> anyhow::Result<Books> {
        let mut command = Command::new(program);
        command.arg("--dir").arg(self.place.path.join("books")).args(["--port", "0"]);
        let (child, line) = self.start("books", command).await?;
        self.keep(child);
        let announced: Value = serde_json::from_str(&line).context("the provider announced no address")?;
        let address = announced["address"].as_str().context("the provider announced no address")?;
        Books::at(format!("http://{address}"))
    }

    /// Makes the tenant and its token, and starts the API; gives a client for the tenant.
    pub(super) async fn start_api(&mut self) -> anyhow::Result<Client> {
        let tokens = seed::prepare(&self.database_url, &self.place.path).await?;
        let mut command = self.deedbox("serve", "serve")?;
        command.args(["--listen", "127.0.0.1:0"]);
        let (child, line) = self.start("serve", command).await?;
        self.keep(child);
        let address = line.strip_prefix("listening on ").context("the API announced no address")?;
        self.api = address.to_owned();
        Client::new(address.parse()?, tokens.tenant)
    }

    pub(super) fn api_address(&self) -> &str {
        &self.api
    }

    /// Starts a worker; it is the caller's to kill or to `keep`.
    pub(super) async fn start_worker(&self, name: &str) -> anyhow::Result<Child> {
        let command = self.deedbox("worker", name)?;
        let (child, line) = self.start(name, command).await?;
        anyhow::ensure!(line == format!("working as {name}"), "{name} announced itself as: {line}");
        Ok(child)
    }

    /// Ends this child with the others.
    pub(super) fn keep(&mut self, child: Child) {
        self.children.push(child);
    }

    /// Adds the end of each child's log to an error.
    pub(super) fn with_logs(&self, error: anyhow::Error) -> anyhow::Error {
        let mut text = format!("{error:#}");
        for name in ["books", "serve", "worker-1", "worker-2"] {
            let log = std::fs::read_to_string(self.log(name)).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
            if !last.is_empty() {
                text.push_str(&format!("\n-- the end of the log of {name}\n{}", last.join("\n")));
            }
        }
        anyhow::anyhow!(text)
    }

    /// Ends what was started, the newest first and PostgreSQL last, and removes the directory.
    pub(super) async fn end(mut self) {
        while let Some(child) = self.children.pop() {
            child.end().await;
        }
        if let Some(server) = self.server.take() {
            server.stop().await;
        }
    }

    async fn start(&self, name: &str, command: Command) -> anyhow::Result<(Child, String)> {
        Child::start(name, command, self.log(name)).await
    }

    fn log(&self, name: &str) -> PathBuf {
        self.place.path.join(format!("{name}.log"))
    }

    /// This very program, as a part of the demo's fleet.
    fn deedbox(&self, part: &str, name: &str) -> anyhow::Result<Command> {
        let place = &self.place.path;
        let mut command = Command::new(std::env::current_exe().context("this program cannot be found")?);
        command.arg(part).args(["--name", name]).env("DATABASE_URL", &self.database_url);
        command.arg("--master-key-file").arg(place.join(MASTER_KEY));
        command.arg("--cache-dir").arg(place.join(CACHE).join(name));
        command.arg("--config").arg(place.join("deedbox.toml"));
        // The user's certificate is not made for the demo's address.
        command.env_remove("DEEDBOX_TLS_CERT").env_remove("DEEDBOX_TLS_KEY");
        // Its master key is of the demo's own.
        for variable in master_keys::VARIABLES {
            command.env_remove(variable);
        }
        Ok(command)
    }
}

/// The directory of a demo, removed with everything in it unless the user named it.
struct Place {
    path: PathBuf,
    temporary: bool,
}

impl Place {
    fn make(given: Option<PathBuf>) -> anyhow::Result<Self> {
        let temporary = given.is_none();
        let name = || format!("deedbox-demo-{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
        let path = given.unwrap_or_else(|| std::env::temp_dir().join(name()));
        let path = std::path::absolute(path)?;
        let cannot = || format!("cannot create {}", path.display());
        DirBuilder::new().mode(0o755).recursive(!temporary).create(&path).with_context(cannot)?;
        let place = Self { path, temporary };
        anyhow::ensure!(
            place.path.read_dir()?.next().is_none(),
            "{} is not empty: name another directory",
            place.path.display()
        );
        if temporary {
            // Whatever the umask says: PostgreSQL may run as another user, who has to get through.
            std::fs::set_permissions(&place.path, PermissionsExt::from_mode(0o755))?;
        }
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.temporary {
            return;
        }
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(%error, directory = %self.path.display(), "the demo's directory cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_place_is_removed_and_a_given_one_is_kept() {
        let place = Place::make(None).unwrap();
        let path = place.path.clone();
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        drop(place);
        assert!(!path.exists());

        let root = tempfile::tempdir().unwrap();
        let given = root.path().join("kept");
        drop(Place::make(Some(given.clone())).unwrap());
        assert!(given.exists());
    }

    #[test]
    fn a_directory_in_use_is_not_taken_over() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("file"), "").unwrap();
        assert!(Place::make(Some(root.path().to_owned())).is_err());
        assert!(root.path().join("file").exists());
    }
}
