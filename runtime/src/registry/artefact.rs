//! Compiled code: of this host's own compiler, or on this node's disk. A file is loaded only when its keyed hash shows that this
//! host wrote it for this component and this engine; any other is compiled anew and overwritten.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use uuid::Uuid;
use wasmtime::component::Component;
use zeroize::Zeroizing;

use super::sweep;
use crate::host::{Engine, compatibility};

const MAC_BYTES: usize = 32;

/// Tells the unfinished files of this process from those of an earlier one with the same id.
static MARK: LazyLock<String> = LazyLock::new(|| Uuid::new_v4().simple().to_string());

/// Counts the files that this process writes, whoever opened their directory.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Compiled code that this host has made. Whoever makes one vouches for that.
pub struct Code(Vec<u8>);

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Code({} bytes)", self.0.len())
    }
}

impl Code {
    /// Of this host's own compiling process.
    pub fn of_compiler(code: Vec<u8>) -> Self {
        Self(code)
    }

    /// Fails when the component declares more than the engine's places have, or when the code is for another engine.
    #[allow(
        unsafe_code,
        reason = "wasmtime cannot verify compiled code; that it is this host's own is what the type says"
    )]
    pub fn component(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: the bytes are what this host's compiler gave, or what `Artefacts::load` has found to be unchanged since.
        unsafe { Component::deserialize(engine.wasmtime(), &self.0) }
    }
}

/// The directory of compiled code, and the key that its files are authenticated with.
#[derive(Clone)]
pub struct Artefacts {
    dir: Arc<Dir>,
    key: Zeroizing<[u8; 32]>,
    max_bytes: u64,
}

impl std::fmt::Debug for Artefacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Artefacts").field("dir", &self.dir).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the cache directory {0} cannot be used: {1}")]
pub struct CacheError(PathBuf, std::io::Error);

impl Artefacts {
    /// Opens the directory, which is made if it is not there. `key` must not be kept in it. `max_bytes`: of all files.
    pub fn open(path: &Path, key: Zeroizing<[u8; 32]>, max_bytes: u64) -> Result<Self, CacheError> {
        let failed = |e| CacheError(path.to_owned(), e);
        Dir::create_ambient_dir_all(path, ambient_authority()).map_err(failed)?;
        let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(failed)?;
        sweep::remove_leftovers(&dir, &MARK).and_then(|()| sweep::shrink(&dir, max_bytes)).map_err(failed)?;
        Ok(Self { dir: Arc::new(dir), key, max_bytes })
    }

    /// The compiled code, when a file of this host's own making is there.
    pub fn load(&self, engine: &Engine, digest: &[u8; 32]) -> Option<Code> {
        let mut file = self.dir.open(name(engine, digest)).ok()?;
        // Whatever is larger was not kept by this host, and must not fill its memory.
        let max = self.max_bytes.saturating_add(MAC_BYTES as u64);
        let length = file.metadata().ok()?.len();
        if length > max {
            return None;
        }
        let mut mac = [0; MAC_BYTES];
        let mut code = Vec::with_capacity(usize::try_from(length).ok()?);
        let read = file.read_exact(&mut mac).and_then(|()| (&mut file).take(max).read_to_end(&mut code));
        // The comparison of two `Hash` values takes the same time whatever they are.
        if read.is_err() || self.mac(engine, digest, &code) != blake3::Hash::from_bytes(mac) {
            tracing::warn!(
                module.digest = hex(digest),
                "a compiled file was not made by this host: it is compiled anew"
            );
            return None;
        }
        if let Err(error) = sweep::touch(&file) {
            tracing::debug!(module.digest = hex(digest), %error, "a compiled file will seem to be older than it is");
        }
        Some(Code(code))
    }

    /// Keeps compiled code, and removes the oldest to make room. A failure only costs the next start a compilation.
    pub fn save(&self, engine: &Engine, digest: &[u8; 32], code: &Code) {
        let mac = self.mac(engine, digest, &code.0);
        let written = self.write(&name(engine, digest), &[&mac.as_bytes()[..], &code.0[..]]);
        if let Err(error) = written.and_then(|()| sweep::shrink(&self.dir, self.max_bytes)) {
            tracing::warn!(module.digest = hex(digest), error = %error, "compiled code could not be kept");
        }
    }

    /// Writes under another name first, so that a file is there whole or not at all.
    fn write(&self, name: &str, parts: &[&[u8]]) -> std::io::Result<()> {
        let unfinished = sweep::unfinished(name, &MARK, SERIAL.fetch_add(1, Ordering::Relaxed));
        let mut file = self.dir.open_with(&unfinished, OpenOptions::new().write(true).create_new(true))?;
        let written = parts.iter().try_for_each(|part| file.write_all(part)).and_then(|()| file.sync_all());
        let written = written.and_then(|()| self.dir.rename(&unfinished, &self.dir, name));
        if written.is_err() {
            // On a full disk above all, the beginning of a file is no use to anyone.
            let _ = self.dir.remove_file(&unfinished);
        }
        written
    }

    fn mac(&self, engine: &Engine, digest: &[u8; 32], code: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(digest).update(&compatibility(engine.wasmtime()).to_le_bytes()).update(code);
        hasher.finalize()
    }
}

/// Code for another engine has another name.
fn name(engine: &Engine, digest: &[u8; 32]) -> String {
    format!("{}-{:016x}{}", hex(digest), compatibility(engine.wasmtime()), sweep::WHOLE)
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::config::HostConfig;

    const DIGEST: [u8; 32] = [1; 32];
    const OTHER: [u8; 32] = [2; 32];

    fn engine() -> Arc<Engine> {
        let config = HostConfig { max_instances: 1, max_memory_bytes: 64 << 20, ..HostConfig::default() };
        Engine::new(config).unwrap()
    }

    fn opened(place: &TempDir, key: u8, max_bytes: u64) -> Artefacts {
        Artefacts::open(place.path(), Zeroizing::new([key; 32]), max_bytes).unwrap()
    }

    fn code() -> Code {
        Code((0..200).collect())
    }

    /// F-G01.
    #[test]
    fn a_file_that_was_changed_anywhere_is_not_loaded() {
        let (place, engine) = (tempfile::tempdir().unwrap(), engine());
        let artefacts = opened(&place, 7, 1 << 20);
        artefacts.save(&engine, &DIGEST, &code());
        let name = name(&engine, &DIGEST);
        let good = artefacts.dir.read(&name).unwrap();
        let is_loaded = |bytes: &[u8]| {
            artefacts.dir.write(&name, bytes).unwrap();
            artefacts.load(&engine, &DIGEST).is_some()
        };
        assert!(is_loaded(&good));
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut flipped = good.clone();
                flipped[at] ^= 1 << bit;
                assert!(!is_loaded(&flipped), "byte {at}, bit {bit}");
            }
            assert!(!is_loaded(&good[..at]), "cut at {at}");
        }
        assert!(!is_loaded(&[&good[..], &[0]].concat()));
        assert!(is_loaded(&good));
    }

    /// F-G01.
    #[test]
    fn a_planted_file_is_not_loaded() {
        let (place, engine) = (tempfile::tempdir().unwrap(), engine());
        let artefacts = opened(&place, 7, 1 << 20);
        opened(&place, 8, 1 << 20).save(&engine, &DIGEST, &code());
        assert!(artefacts.load(&engine, &DIGEST).is_none(), "under another key");
        artefacts.save(&engine, &OTHER, &code());
        artefacts.dir.rename(name(&engine, &OTHER), &artefacts.dir, name(&engine, &DIGEST)).unwrap();
        assert!(artefacts.load(&engine, &DIGEST).is_none(), "of another component");
        artefacts.save(&engine, &DIGEST, &code());
        assert!(artefacts.load(&engine, &DIGEST).is_some_and(|loaded| loaded.0 == code().0));
    }

    #[test]
    fn the_directory_stays_within_its_bound() {
        let (place, engine) = (tempfile::tempdir().unwrap(), engine());
        let file_bytes = (MAC_BYTES + code().0.len()) as u64;
        let artefacts = opened(&place, 7, 2 * file_bytes);
        (0..5).for_each(|number| artefacts.save(&engine, &[number; 32], &code()));
        let there = |artefacts: &Artefacts| artefacts.dir.entries().unwrap().count();
        assert_eq!(there(&artefacts), 2);
        assert_eq!(there(&opened(&place, 7, file_bytes)), 1, "a smaller bound holds from the start");
        let none = opened(&place, 7, file_bytes - 1);
        none.save(&engine, &DIGEST, &code());
        assert_eq!(there(&none), 0);
    }
}
