//! A child process that announces itself with one line on its standard output and writes its log into a file. It is ended when it is
//! dropped, and politely when there is time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{ChildStdout, Command};

const ANNOUNCED_WITHIN: Duration = Duration::from_secs(60);
const ENDED_WITHIN: Duration = Duration::from_secs(15);

pub(super) struct Child {
    name: String,
    process: tokio::process::Child,
    pid: u32,
    /// Kept open, so that the child can write on.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Child {
    /// Starts the process and waits for its first line. In a process group of its own, so that Ctrl-C reaches only the demo, which
    /// then ends its children in order.
    pub(super) async fn start(name: &str, mut command: Command, log: PathBuf) -> anyhow::Result<(Self, String)> {
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file).kill_on_drop(true).process_group(0);
        let program = command.as_std().get_program().to_owned();
        let mut process = command.spawn().with_context(|| format!("cannot start {}", Path::new(&program).display()))?;
        let output = process.stdout.take().context("the child has no standard output")?;
        let pid = process.id().context("the child has ended at once")?;
        let mut child = Self { name: name.to_owned(), process, pid, _output: BufReader::new(output).lines() };
        let line = tokio::time::timeout(ANNOUNCED_WITHIN, child._output.next_line()).await;
        let line = line.map_err(|_| anyhow::anyhow!("{name} said nothing within {ANNOUNCED_WITHIN:?}"))??;
        Ok((child, line.with_context(|| format!("{name} ended before it was ready"))?))
    }

    pub(super) fn id(&self) -> u32 {
        self.pid
    }

    /// Kills it with SIGKILL and makes sure that this is what it died of.
    pub(super) async fn kill(mut self) -> anyhow::Result<ExitStatus> {
        use std::os::unix::process::ExitStatusExt;
        self.process.start_kill()?;
        let status = self.process.wait().await?;
        anyhow::ensure!(
            status.signal() == Some(Signal::KILL.as_raw()),
            "{} was to be killed, but: {status}",
            self.name
        );
        Ok(status)
    }

    /// Asks it to stop, and ends it if it does not.
    pub(super) async fn end(mut self) {
        // An id that is not taken back yet still names our child: it was not waited for.
        if let (Ok(None), Some(pid)) = (self.process.try_wait(), self.pid.try_into().ok().and_then(Pid::from_raw)) {
            let _ = kill_process(pid, Signal::TERM);
        }
        if tokio::time::timeout(ENDED_WITHIN, self.process.wait()).await.is_err() {
            tracing::warn!(child = self.name, "it did not stop when asked to, and is killed");
            let _ = self.process.kill().await;
        }
    }
}
