//! One write: under a temporary name of its own, to the disk, and then by one rename in place. Readers see the old file
//! or the new one, never a part.
//!
//! The temporary name has the effect's key and the send's number. A send first removes what earlier sends have left:
//! one that sleeps between its write and its rename finds nothing to rename when it wakes, and two that overlap never
//! write into one file.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cap_std::fs::{Dir, OpenOptions};
use http::HeaderMap;

use super::path::{FilePath, MARK};
use crate::clock::Clock;
use crate::config::ms;
use crate::effect::{Learned, Resend};
use crate::gateway::plan::{Carried, Pins, Sending};
use crate::gateway::transport::{Body, FirstByte, Sent};
use crate::key::{self, EffectId};
use crate::probe::Point;

/// Where the key goes, as the ledger keeps it.
const CARRIER: &str = r#"{"temporary_name":true}"#;

/// What is kept of a file's own name in its temporary one, in bytes: both must fit into a name of the file system.
const MAX_KEPT_NAME: usize = 150;

/// A file to be written.
#[derive(Debug)]
pub struct Write {
    pub root: Arc<Dir>,
    /// The name of the tenant's own directory below the root.
    pub tenant: String,
    pub path: FilePath,
    pub bytes: Bytes,
}

impl Write {
    pub fn pins(&self, effect_id: EffectId) -> Pins {
        Pins {
            wire_key: Some(key::wire_key(&effect_id).text()),
            carrier: Some(CARRIER.to_owned()),
            window_from: "first",
            resend: Some(Resend::Idempotent),
            ..Pins::default()
        }
    }

    /// Writes once. Whether the file was put in place is decided once, between the thread that writes and whoever gives
    /// the write up.
    pub async fn carry_out(&self, sending: Sending<'_>) -> Carried {
        let placing = FirstByte::default();
        let limit = ms(sending.attempt.gateway.config.default_send_ms);
        let why = tokio::select! {
            biased;
            sent = self.put(sending, placing.clone()) => return carried(sent),
            () = sending.attempt.closing.cancelled() => Sent::Lost("the attempt was stopped".to_owned()),
            () = tokio::time::sleep(limit) => Sent::TimedOut,
        };
        carried(if placing.forbid() {
            Sent::Nothing("it was stopped before the file was in place".to_owned())
        } else {
            why
        })
    }

    async fn put(&self, sending: Sending<'_>, placing: FirstByte) -> Sent {
        let gateway = &sending.attempt.gateway;
        let plan = Plan {
            root: self.root.clone(),
            tenant: self.tenant.clone(),
            path: self.path.clone(),
            key: sending.known.wire_key.clone().unwrap_or_default(),
            send: sending.known.holder.send,
        };
        let bytes = self.bytes.clone();
        let staged = match tokio::task::spawn_blocking(move || plan.stage(&bytes)).await {
            Ok(Ok(staged)) => staged,
            Ok(Err(error)) => return Sent::Nothing(format!("{}: {error}", self.path)),
            Err(_) => return Sent::Nothing("the write was broken off".to_owned()),
        };
        gateway.probe.reach(Point::BeforeRename).await;
        let (clock, not_after) = (gateway.clock.clone(), sending.not_after);
        let placed = tokio::task::spawn_blocking(move || staged.place(&*clock, not_after, &placing)).await;
        placed.unwrap_or_else(|_| Sent::Lost("the write was broken off".to_owned()))
    }
}

fn carried(sent: Sent) -> Carried {
    let learned = match &sent {
        Sent::Answer { .. } => Learned::Answer,
        Sent::Nothing(_) | Sent::TooLate => Learned::NotApplied,
        Sent::TimedOut | Sent::Lost(_) => Learned::Unknown,
    };
    Carried::new(sent, learned)
}

/// All that a thread needs to write the file under its temporary name.
struct Plan {
    root: Arc<Dir>,
    tenant: String,
    path: FilePath,
    key: String,
    send: i32,
}

impl Plan {
    /// Blocks. Nothing is visible under the file's own name yet.
    fn stage(&self, bytes: &[u8]) -> std::io::Result<Staged> {
        let mut dir = below(&self.root, &self.tenant)?;
        for parent in &self.path.parents {
            dir = below(&dir, parent)?;
        }
        for earlier in 1..self.send {
            match dir.remove_file(self.temporary(earlier)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let staged = Staged { temporary: self.temporary(self.send), file: self.path.file.clone(), dir };
        // The name is this send's alone: whatever stands there is not to be followed or written into.
        let mut file = staged.dir.open_with(&staged.temporary, OpenOptions::new().write(true).create_new(true))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(staged)
    }

    fn temporary(&self, send: i32) -> String {
        let file = &self.path.file;
        let kept = &file[..file.floor_char_boundary(MAX_KEPT_NAME)];
        format!(".{kept}{MARK}{}-{send}", self.key)
    }
}

/// A directory inside another, made if it is not there. A link that leads out of it is refused by the handle.
fn below(dir: &Dir, name: &str) -> std::io::Result<Dir> {
    match dir.create_dir(name) {
        Ok(()) => sync(dir)?,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    dir.open_dir(name)
}

fn sync(dir: &Dir) -> std::io::Result<()> {
    // The directory's own handle is for finding names only: the system refuses to sync it.
    dir.open(".")?.sync_all()
}

/// A file that is whole on the disk under its temporary name. Goes away unless it is put in place.
struct Staged {
    dir: Dir,
    temporary: String,
    file: String,
}

impl Staged {
    /// Blocks. The last look at the lease is just before the rename; a process that is stopped between the two, and whose
    /// successor has begun by the time it wakes, has nothing left to rename.
    fn place(self, clock: &dyn Clock, not_after: Duration, placing: &FirstByte) -> Sent {
        if clock.elapsed() >= not_after {
            return Sent::Nothing("the lease is over".to_owned());
        }
        if !placing.begin() {
            return Sent::Nothing("the write was given up".to_owned());
        }
        if let Err(error) = self.dir.rename(&self.temporary, &self.dir, &self.file) {
            let why = format!("{}: {error}", self.file);
            return if surely_not(error.kind()) { Sent::Nothing(why) } else { Sent::Lost(why) };
        }
        match sync(&self.dir) {
            Ok(()) => Sent::Answer { status: 200, headers: HeaderMap::new(), body: Body::Whole(Bytes::new()) },
            Err(error) => Sent::Lost(format!("{}: it may not outlast a crash of the machine: {error}", self.file)),
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Gone already after the rename; else the next send removes what stays.
        let _ = self.dir.remove_file(&self.temporary);
    }
}

/// The kinds of error with which a rename has certainly changed nothing. Any other may come from a file server that did
/// it and lost the answer.
fn surely_not(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind as Kind;
    matches!(
        kind,
        Kind::PermissionDenied
            | Kind::IsADirectory
            | Kind::NotADirectory
            | Kind::DirectoryNotEmpty
            | Kind::ReadOnlyFilesystem
            | Kind::StorageFull
            | Kind::QuotaExceeded
    )
}
