//! The thread that the server's process belongs to. The parent-death signal fires when the *thread* that spawned a child ends, so
//! one thread spawns it, gives it the shutdown signals, reaps it, and only then ends. It must never signal a process it has reaped.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use super::layout::Lock;

/// PostgreSQL's fast shutdown, its immediate one, and force, each with the time it gets.
const SHUTDOWN: [(Signal, Duration); 3] = [
    (Signal::INT, Duration::from_secs(20)),
    (Signal::QUIT, Duration::from_secs(5)),
    (Signal::KILL, Duration::from_secs(5)),
];
const IDLE_POLL: Duration = Duration::from_millis(100);
const STOP_POLL: Duration = Duration::from_millis(5);

/// The server's process. Dropping it begins the shutdown.
#[derive(Debug)]
pub(super) struct Postmaster {
    pid: u32,
    stop: SyncSender<()>,
    ended: watch::Receiver<bool>,
}

impl Postmaster {
    /// Spawns the process; `lock` is kept until it has ended. Blocking until it is spawned.
    pub fn launch(command: Command, lock: Lock) -> io::Result<Self> {
        let (stop, stopped) = sync_channel(1);
        let (tell_pid, pid) = sync_channel(1);
        let (tell_end, ended) = watch::channel(false);
        std::thread::Builder::new().name("postgres".into()).spawn(move || {
            own(command, &tell_pid, &stopped);
            drop(lock);
            tell_end.send_replace(true);
        })?;
        let pid = pid.recv().map_err(io::Error::other)??;
        Ok(Self { pid, stop, ended })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    pub async fn ended(&self) {
        // An error means that the thread is gone, and with it the process.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    pub async fn stop(self) {
        // A full channel already holds an order to stop, a closed one has nobody left to stop.
        let _ = self.stop.try_send(());
        self.ended().await;
    }
}

fn own(mut command: Command, tell_pid: &SyncSender<io::Result<u32>>, stopped: &Receiver<()>) {
    let spawned = command.spawn();
    // The log's file handles live in the command.
    drop(command);
    match spawned {
        Ok(child) => {
            let _ = tell_pid.send(Ok(child.id()));
            watch_over(child, stopped);
        }
        Err(error) => {
            let _ = tell_pid.send(Err(error));
        }
    }
}

fn watch_over(mut child: Child, stopped: &Receiver<()>) {
    while stopped.recv_timeout(IDLE_POLL) == Err(RecvTimeoutError::Timeout) {
        if has_ended(&mut child) {
            return;
        }
    }
    let pid = Pid::from_child(&child);
    for (signal, patience) in SHUTDOWN {
        if let Err(error) = kill_process(pid, signal) {
            tracing::warn!(%error, ?signal, "the PostgreSQL server cannot be signalled");
        }
        let begun = Instant::now();
        while begun.elapsed() < patience {
            if has_ended(&mut child) {
                return;
            }
            std::thread::sleep(STOP_POLL);
        }
        tracing::warn!(?signal, "the PostgreSQL server did not stop in time");
    }
}

fn has_ended(child: &mut Child) -> bool {
    match child.try_wait() {
        Ok(Some(status)) => {
            tracing::debug!(%status, "the PostgreSQL server ended");
            true
        }
        Ok(None) => false,
        Err(error) => {
            tracing::warn!(%error, "the PostgreSQL server cannot be waited for");
            true
        }
    }
}
