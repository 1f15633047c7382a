//! Starts the compiling process, feeds it, hears its answer, and ends it. No process is left behind on any path, and none is
//! compiled for in this one.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use super::Error;
use super::compiler::Limits;
use super::frame::{self, Answer, Broken};
use crate::config::{HostConfig, ms};

/// What is kept of its standard error.
const MAX_SAID: usize = 4096;

/// A killed process is gone at once, unless the system itself hangs.
const REAPED_WITHIN: Duration = Duration::from_secs(5);

/// The system's name for the program that is running, even after its file was replaced.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Compiles components, each in a process of its own.
#[derive(Clone, Debug)]
pub struct Compiler {
    program: PathBuf,
    threads: usize,
    max_ms: u64,
    max_cpu_ms: u64,
    max_memory_bytes: u64,
    max_code_bytes: usize,
}

impl Compiler {
    pub fn new(config: &HostConfig) -> Self {
        Self {
            program: config.compiler.clone().unwrap_or_else(own_program),
            threads: config.compile_threads,
            max_ms: config.max_compile_ms,
            max_cpu_ms: config.max_compile_cpu_ms,
            max_memory_bytes: config.max_compile_bytes,
            max_code_bytes: config.max_code_bytes,
        }
    }

    /// Compiles, for engines of this compatibility. Blocking: the process dies when the thread that started it ends, so that
    /// thread stays with it. It is killed when `stop` is cancelled.
    pub fn compile(&self, compatibility: u64, bytes: &[u8], stop: &CancellationToken) -> Result<Vec<u8>, Error> {
        // Its own, because the node's may be shutting down, which must end the process and not lose it.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Error::Internal(format!("the compiler cannot be watched: {e}")))?;
        runtime.block_on(self.supervise(compatibility, bytes, stop))
    }

    async fn supervise(&self, compatibility: u64, bytes: &[u8], stop: &CancellationToken) -> Result<Vec<u8>, Error> {
        let mut process = Process::spawn(self.command(bytes.len())).map_err(|e| self.not_started(&e))?;
        let late = || beyond("took longer than", "host.max_compile_ms", self.max_ms, "ms");
        let told = tokio::select! {
            biased;
            () = stop.cancelled() => Err(Error::Internal("compiling was given up: nobody waits for it".to_owned())),
            told = process.converse(bytes, compatibility, self.max_code_bytes) => Ok(told),
            () = tokio::time::sleep(ms(self.max_ms)) => Err(late()),
        };
        process.end().await;
        let Told { answer, status, said } = told?;
        tracing::debug!(compiler.status = ?status, compiler.said = said, "the compiler has ended");
        match answer {
            Ok(Answer::Code(code)) => Ok(code),
            Ok(Answer::Refused(words)) => Err(Error::Invalid(format!("the component is not valid: {words}"))),
            Ok(Answer::NoMemory) => Err(self.beyond_memory()),
            Err(Broken::TooLarge) => {
                Err(beyond("gave more code than", "host.max_code_bytes", self.max_code_bytes as u64, "bytes"))
            }
            Err(Broken::NoAnswer) => Err(self.ended(status, &said)),
            Err(Broken::NoGreeting) => {
                Err(self.not_started(&io::Error::other(format!("{}: {}", ended_as(status), said.trim()))))
            }
            Err(Broken::OtherVersion) => Err(self.not_started(&io::Error::other("it makes code for another engine"))),
        }
    }

    fn command(&self, bytes: usize) -> Command {
        let limits = Limits {
            parent: i32::try_from(std::process::id()).unwrap_or_default(),
            bytes,
            cpu_s: self.max_cpu_ms.div_ceil(1_000),
            memory_bytes: self.max_memory_bytes,
        };
        let mut command = Command::new(&self.program);
        command.args(limits.arguments()).env_clear().env("RAYON_NUM_THREADS", self.threads.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: Ctrl-C in a terminal reaches only the node.
        command.current_dir("/").process_group(0).kill_on_drop(true);
        command
    }

    fn not_started(&self, error: &io::Error) -> Error {
        let program = self.program.display();
        Error::Internal(format!(
            "components cannot be compiled: {program} (host.compiler) must be the `deedbox` program of this very version: {error}"
        ))
    }

    /// It ended without an answer, so the component has ended it.
    fn ended(&self, status: Option<ExitStatus>, said: &str) -> Error {
        let signal = status.and_then(|status| status.signal());
        if signal == Some(Signal::XCPU.as_raw()) {
            return beyond("took more processor time than", "host.max_compile_cpu_ms", self.max_cpu_ms, "ms");
        }
        // The words of Rust's own runtime, which is all that it leaves of it.
        if said.contains("memory allocation of ") || said.contains("out of memory") {
            return self.beyond_memory();
        }
        if said.contains("has overflowed its stack") {
            return Error::Invalid(
                "the component cannot be compiled: it is nested too deeply for the compiler".to_owned(),
            );
        }
        tracing::warn!(compiler.status = ?status, "the compiler did not survive a component");
        Error::Invalid(format!("the component cannot be compiled: the compiler {}", ended_as(status)))
    }

    fn beyond_memory(&self) -> Error {
        beyond("needed more memory than", "host.max_compile_bytes", self.max_memory_bytes, "bytes")
    }
}

fn own_program() -> PathBuf {
    let own = Path::new(OWN_PROGRAM);
    if own.exists() {
        return own.to_owned();
    }
    // Without a path there is nothing to start, which the first upload is told.
    std::env::current_exe().unwrap_or_default()
}

fn beyond(how: &str, limit: &str, value: u64, unit: &str) -> Error {
    Error::Invalid(format!("the component cannot be compiled: compiling {how} {limit} ({value} {unit})"))
}

fn ended_as(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return "could not be waited for".to_owned() };
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("ended by signal {signal}"),
        (None, Some(code)) => format!("ended with exit code {code}"),
        (None, None) => format!("ended: {status}"),
    }
}

/// What came of a conversation.
struct Told {
    answer: Result<Answer, Broken>,
    status: Option<ExitStatus>,
    /// The beginning of its standard error.
    said: String,
}

struct Process {
    child: Child,
    pipes: Option<(ChildStdin, ChildStdout, ChildStderr)>,
}

impl Process {
    fn spawn(mut command: Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pipes =
            if let (Some(input), Some(output), Some(errors)) = pipes { Some((input, output, errors)) } else { None };
        Ok(Self { child, pipes })
    }

    /// Feeds and hears it at once, until it has ended.
    async fn converse(&mut self, bytes: &[u8], compatibility: u64, max_code: usize) -> Told {
        let Some((mut input, mut output, errors)) = self.pipes.take() else {
            return Told { answer: Err(Broken::NoGreeting), status: None, said: String::new() };
        };
        let feed = async move {
            // One that does not read to the end says or shows why.
            let _ = input.write_all(bytes).await;
            let _ = input.shutdown().await;
        };
        // The pipe is closed with the answer, so that nobody who goes on writing is waited for.
        let hear = async move { frame::read(&mut output, compatibility, max_code).await };
        let ((), answer, said) = tokio::join!(feed, hear, listen(errors));
        Told { answer, status: self.child.wait().await.ok(), said }
    }

    /// Kills what is left of it and takes it back.
    async fn end(&mut self) {
        self.kill();
        if tokio::time::timeout(REAPED_WITHIN, self.child.wait()).await.is_err() {
            tracing::error!(compiler.pid = self.child.id(), "a killed compiler does not end");
        }
    }

    fn kill(&mut self) {
        // An id that is not taken back yet still names our child.
        if let Some(group) = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The beginning of what it says; the rest is read and dropped, so that it never waits for a reader.
async fn listen(mut errors: ChildStderr) -> String {
    let mut said = Vec::new();
    let mut part = [0; 1024];
    while let Ok(read @ 1..) = errors.read(&mut part).await {
        said.extend_from_slice(&part[..read.min(MAX_SAID - said.len())]);
    }
    String::from_utf8_lossy(&said).into_owned()
}
