//! The naive twins: the program `naive` beside a provider, and a loop that runs it at least once, as an engine would.

use std::process::Stdio;

use deedbox_books::{Books, Options};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::case::Case;
use crate::cli::program::program;
use crate::harness::cell::PATIENCE;
use crate::harness::provider;

/// A provider and nothing else.
#[derive(Debug)]
pub struct Stand {
    pub books: Books,
    _dir: TempDir,
    _provider: tokio::task::JoinHandle<()>,
}

impl Stand {
    /// A provider as the case's activity meets it.
    pub async fn with(case: &Case) -> Self {
        let stand = Self::of(case.options()).await;
        case.seed(&format!("http://{}", stand.books.address)).await;
        stand
    }

    pub async fn of(options: Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (books, provider) = provider(dir.path().join("books"), options).await;
        Self { books, _dir: dir, _provider: provider }
    }

    /// Starts the twin.
    pub fn start(&self, hazard: &str, input: &Value) -> Naive {
        let mut command = Command::new(program("naive"));
        command.args([hazard, &format!("http://{}", self.books.address), &input.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        Naive(command.spawn().unwrap())
    }

    /// Runs the twin to its end. Whether it ended well.
    pub async fn run(&self, hazard: &str, input: &Value) -> bool {
        self.start(hazard, input).end().await
    }

    /// Runs the twin until it ends well, so often at most. Whether it did.
    pub async fn at_least_once(&self, hazard: &str, input: &Value, max_attempts: usize) -> bool {
        for _ in 0..max_attempts {
            if self.run(hazard, input).await {
                return true;
            }
        }
        false
    }
}

/// A running twin. It is killed when it is dropped.
#[derive(Debug)]
pub struct Naive(Child);

impl Naive {
    /// Waits for its end. Whether it ended well.
    pub async fn end(mut self) -> bool {
        tokio::time::timeout(PATIENCE, self.0.wait()).await.unwrap().unwrap().success()
    }

    /// SIGKILL. It must not have ended before.
    pub async fn kill(mut self) {
        assert_eq!(self.0.try_wait().unwrap(), None, "it had ended before it was killed");
        self.0.kill().await.unwrap();
    }
}
