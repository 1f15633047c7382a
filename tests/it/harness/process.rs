//! A worker that is a real process. It is killed and reaped on every path.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::{World, ps, shared};

const PATIENCE: Duration = Duration::from_secs(30);

/// A program of the workspace, built beside the one that cargo built for these tests.
pub fn program(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_probed-node")).with_file_name(name);
    assert!(path.exists(), "{} is missing: run `cargo build --workspace --bins` first", path.display());
    path
}

/// A running `probed-node`.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: ChildStdin,
    words: mpsc::UnboundedReceiver<String>,
}

impl Process {
    /// Starts a worker that holds at a point of its first attempt, or nowhere. `settings`: a TOML text.
    pub async fn start(world: &World, name: &str, hold_at: Option<&str>, settings: &str) -> Self {
        Self::start_in(world, name, hold_at, settings, &[]).await
    }

    /// The same with more in its environment.
    pub async fn start_in(
        world: &World,
        name: &str,
        hold_at: Option<&str>,
        settings: &str,
        environment: &[(&str, &str)],
    ) -> Self {
        let file = world.dir.path().join(format!("{name}.toml"));
        std::fs::write(&file, settings).unwrap();
        let mut child = command(world, name, hold_at, file).envs(environment.iter().copied()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (said, words) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|word| said.send(word)).ok();
        });
        let mut process = Self { child, stdin, words };
        process.says("working").await;
        process
    }

    /// Waits until the first attempt holds.
    pub async fn held(&mut self) {
        self.says("held").await;
    }

    /// SIGKILL.
    pub fn kill(self) {}

    /// SIGSTOP, until the kernel says that all of it stands still.
    pub async fn stop(&self) {
        self.signal("STOP");
        self.until(|state| state == 'T').await;
    }

    /// Lets a held attempt go on, and SIGCONT.
    pub fn wake(&mut self) {
        // One that never held has nobody who reads this.
        self.stdin.write_all(b"go\n").ok();
        self.signal("CONT");
    }

    /// SIGTERM: it takes no more work, and ends when its attempts have.
    pub async fn drain(mut self) {
        self.signal("TERM");
        self.until(|state| state == 'Z').await;
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    async fn says(&mut self, word: &str) {
        let said = tokio::time::timeout(PATIENCE, self.words.recv()).await.unwrap();
        assert_eq!(said.as_deref(), Some(word));
    }

    fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").arg("-c").arg(command).status().unwrap().success());
    }

    async fn until(&self, reached: impl Fn(char) -> bool) {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let state = ps::state(self.child.id()).unwrap();
            if reached(state) {
                return;
            }
            assert!(Instant::now() < give_up, "{state}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for one that has ended and was reaped.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn command(world: &World, name: &str, hold_at: Option<&str>, settings: PathBuf) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_probed-node"));
    command.args(["--name", name, "--database-url", &world.database.url]);
    command.arg("--master-key-file").arg(shared::master_key_file());
    command.arg("--cache-dir").arg(shared::cache_dir());
    command.arg("--config").arg(settings);
    command.args(hold_at.map(|point| format!("--hold-at={point}")));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}
