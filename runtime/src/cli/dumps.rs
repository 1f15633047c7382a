//! Keeps the memory of this process, with the secrets in it, from being written down when it crashes, and from other processes of
//! its user. On Linux that also closes `/proc/PID/environ`, where a key that came in a variable stays readable otherwise.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Forbids core dumps, for this process and those that it starts.
pub(super) fn forbid() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "core dumps cannot be forbidden: a crash may write secrets to the disk");
    }
    hide();
}

/// A limit of zero does not stop a dump that goes to a program, as to `systemd-coredump`.
#[cfg(target_os = "linux")]
fn hide() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "this process cannot be hidden from debuggers");
    }
}

#[cfg(not(target_os = "linux"))]
fn hide() {}
