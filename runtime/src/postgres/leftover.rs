//! A server of this data directory that outlived its deedbox: stopped before a new one starts, because the free lock proves that
//! nobody uses it. It must never signal a process that is not a PostgreSQL server working in this very directory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::account::Account;
use super::error::Error;
use super::find::Binaries;
use super::layout::Layout;
use super::log;

/// Seconds for a fast shutdown, then for an immediate one.
const PATIENCE: [(&str, &str); 2] = [("fast", "30"), ("immediate", "10")];
/// How long the children of a killed server may take to notice.
const ORPHANS: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Returns when no process works in the data directory; blocking.
pub(super) fn stop(layout: &Layout, account: &Account, binaries: &Binaries) -> Result<(), Error> {
    let pgdata = layout.pgdata();
    let mut output = String::new();
    for (mode, seconds) in PATIENCE {
        let Some(pid) = server_pid(&pgdata) else {
            break;
        };
        tracing::warn!(postgres.pid = pid, mode, "stopping a PostgreSQL server that was left behind");
        let mut command = account.command(&binaries.pg_ctl(), layout);
        command.args(["stop", "-w", "-m", mode, "-t", seconds, "-D"]).arg(&pgdata);
        let ended = command.output().map_err(|error| Error::io("running pg_ctl", error))?;
        output = log::last_lines(
            &[ended.stdout, ended.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat(),
        );
    }
    if let Some(pid) = server_pid(&pgdata) {
        return Err(Error::LeftBehind { pid, output });
    }
    wait_for_orphans(&pgdata)?;
    forget_stranger(&pgdata)
}

/// The live server of this directory, if `postmaster.pid` names one.
fn server_pid(pgdata: &Path) -> Option<u32> {
    let pid = noted_pid(pgdata)?;
    (names_postgres(pid) && works_in(pid, pgdata)).then_some(pid)
}

fn noted_pid(pgdata: &Path) -> Option<u32> {
    std::fs::read_to_string(pgdata.join("postmaster.pid")).ok()?.lines().next()?.trim().parse().ok()
}

fn names_postgres(pid: u32) -> bool {
    if let Ok(name) = std::fs::read_to_string(proc(pid).join("comm")) {
        return name.trim_end() == "postgres";
    }
    let output = super::find::command("ps").args(["-o", "comm=", "-p", &pid.to_string()]).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("postgres"))
}

/// Every PostgreSQL process works in its data directory. Only Linux tells; elsewhere the process id must do.
fn works_in(pid: u32, pgdata: &Path) -> bool {
    !proc(pid).exists() || proc(pid).join("cwd").read_link().is_ok_and(|dir| dir == pgdata)
}

fn proc(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

fn wait_for_orphans(pgdata: &Path) -> Result<(), Error> {
    let begun = Instant::now();
    loop {
        let Some(pid) = anyone_in(pgdata) else {
            return Ok(());
        };
        if begun.elapsed() > ORPHANS {
            return Err(Error::LeftBehind { pid, output: String::new() });
        }
        std::thread::sleep(POLL);
    }
}

fn anyone_in(pgdata: &Path) -> Option<u32> {
    let processes = Path::new("/proc").read_dir().ok()?;
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| proc(*pid).exists() && works_in(*pid, pgdata)).find(|pid| names_postgres(*pid))
}

/// PostgreSQL will not start while its note names a live process; when that process is none of its own, the note is only in the way.
fn forget_stranger(pgdata: &Path) -> Result<(), Error> {
    let Some(pid) = noted_pid(pgdata) else {
        return Ok(());
    };
    if !proc(pid).exists() || works_in(pid, pgdata) {
        return Ok(());
    }
    std::fs::remove_file(pgdata.join("postmaster.pid"))
        .map_err(|error| Error::io("removing a dead server's postmaster.pid", error))
}
