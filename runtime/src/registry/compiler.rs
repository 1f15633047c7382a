//! The compiling process, `deedbox compile`: confines itself, reads one component from its standard input and writes what came of
//! it to its standard output. It reads hostile bytes, so it must never be given a setting, a secret or an open file, and it must be
//! confined before the first of those bytes.

use std::io::{self, Read};

use rustix::process::{Pid, Resource, Rlimit, getppid, nice, setrlimit};

use super::compile;
use super::frame::{self, Answer};
use crate::host;

/// How far it steps back behind its node.
const NICE: i32 = 5;

/// Seconds between the signal at the limit of processor time, of which it dies, and the kill if it did not.
const CPU_GRACE_S: u64 = 5;

/// Input, output and errors; nothing more is opened.
const MAX_FILES: u64 = 3;

/// What one compilation may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The process id of the node.
    pub parent: i32,
    /// The length of the component.
    pub bytes: usize,
    /// Processor time of all threads, in seconds.
    pub cpu_s: u64,
    /// Memory, without the program itself.
    pub memory_bytes: u64,
}

impl Limits {
    /// The command line that `cli` reads them from.
    pub fn arguments(&self) -> [String; 5] {
        [
            "compile".to_owned(),
            format!("--parent={}", self.parent),
            format!("--bytes={}", self.bytes),
            format!("--cpu-s={}", self.cpu_s),
            format!("--memory-bytes={}", self.memory_bytes),
        ]
    }
}

/// Carries out one compilation. What the component has done wrong is an answer; an error is of this process itself.
pub fn run(limits: &Limits) -> io::Result<()> {
    follow_parent(limits.parent)?;
    let engine = host::compiling_engine().map_err(|e| io::Error::other(format!("{e:#}")))?;
    confine(limits)?;
    let mut out = io::stdout().lock();
    frame::greet(&mut out, host::compatibility(&engine))?;
    let mut component = vec![0; limits.bytes];
    io::stdin().lock().read_exact(&mut component)?;
    let answer = match engine.precompile_component(&component) {
        Ok(code) => Answer::Code(code),
        Err(error) if error.is::<wasmtime::OutOfMemory>() => Answer::NoMemory,
        Err(error) => Answer::Refused(compile::in_full(&error)),
    };
    frame::answer(&mut out, &answer)
}

/// Dies with the node, however that ends.
fn follow_parent(parent: i32) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // It may have ended before that was asked for.
    if Pid::as_raw(getppid()) != parent {
        return Err(io::Error::other("the node that asked for this is gone"));
    }
    Ok(())
}

fn confine(limits: &Limits) -> io::Result<()> {
    // A node that steps back already as far as can be stays there.
    let _ = nice(NICE);
    // A limit of 0 for dumps does not hold where the system hands them to a program.
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    limit(Resource::Core, 0, 0)?;
    limit(Resource::Fsize, 0, 0)?;
    limit(Resource::Cpu, limits.cpu_s, CPU_GRACE_S)?;
    // Not the address space: threads and allocators reserve far more of it than they use.
    limit(Resource::Data, limits.memory_bytes, 0)?;
    limit(Resource::Nofile, MAX_FILES, 0)
}

/// A limit that is there already and lower stays.
fn limit(resource: Resource, most: u64, grace: u64) -> io::Result<()> {
    let there = rustix::process::getrlimit(resource);
    let lower = |there: Option<u64>, new: u64| Some(there.map_or(new, |there| there.min(new)));
    let maximum = lower(there.maximum, most.saturating_add(grace));
    Ok(setrlimit(resource, Rlimit { current: lower(there.current, most), maximum })?)
}
