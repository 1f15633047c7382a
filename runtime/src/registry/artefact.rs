//! Compiled code on this node's disk. A file is loaded only when its keyed hash shows that this host wrote it for this
//! component and this engine; any other is compiled anew and overwritten.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use wasmtime::component::Component;

use crate::host::Engine;

const MAC_BYTES: usize = 32;

/// The directory of compiled code, and the key that its files are authenticated with.
#[derive(Clone)]
pub struct Artefacts {
    dir: Arc<Dir>,
    key: [u8; 32],
    serial: Arc<AtomicU64>,
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
    /// Opens the directory, which is made if it is not there. `key` must not be kept in it.
    pub fn open(path: &Path, key: [u8; 32]) -> Result<Self, CacheError> {
        let failed = |e| CacheError(path.to_owned(), e);
        Dir::create_ambient_dir_all(path, ambient_authority()).map_err(failed)?;
        let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(failed)?;
        Ok(Self { dir: Arc::new(dir), key, serial: Arc::default() })
    }

    /// The compiled component, when a file of this host's own making is there.
    #[allow(
        unsafe_code,
        reason = "wasmtime cannot verify compiled code; the keyed hash has shown that this host wrote it"
    )]
    pub fn load(&self, engine: &Engine, digest: &[u8; 32]) -> Option<Component> {
        let mut file = self.dir.open(name(engine, digest)).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let (mac, code) = bytes.split_at_checked(MAC_BYTES)?;
        // The comparison of two `Hash` values takes the same time whatever they are.
        if self.mac(engine, digest, code) != blake3::Hash::from_slice(mac).ok()? {
            tracing::warn!(
                module.digest = hex(digest),
                "a compiled file was not made by this host: it is compiled anew"
            );
            return None;
        }
        // SAFETY: `code` is what `Component::serialize` gave to this host for this engine, unchanged.
        unsafe { Component::deserialize(engine.wasmtime(), code) }.ok()
    }

    /// Keeps a compiled component. A failure only costs the next start a compilation.
    pub fn save(&self, engine: &Engine, digest: &[u8; 32], component: &Component) {
        let written = component.serialize().map_err(std::io::Error::other).and_then(|code| {
            let mac = self.mac(engine, digest, &code);
            self.write(&name(engine, digest), &[&mac.as_bytes()[..], &code[..]])
        });
        if let Err(error) = written {
            tracing::warn!(module.digest = hex(digest), error = %error, "compiled code could not be kept");
        }
    }

    /// Writes under another name first, so that a file is there whole or not at all.
    fn write(&self, name: &str, parts: &[&[u8]]) -> std::io::Result<()> {
        let unfinished = format!("{name}.{}.{}", std::process::id(), self.serial.fetch_add(1, Ordering::Relaxed));
        let mut file = self.dir.open_with(&unfinished, OpenOptions::new().write(true).create(true).truncate(true))?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.sync_all()?;
        self.dir.rename(&unfinished, &self.dir, name)
    }

    fn mac(&self, engine: &Engine, digest: &[u8; 32], code: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(digest).update(&compatibility(engine).to_le_bytes()).update(code);
        hasher.finalize()
    }
}

/// Another engine, wasmtime or processor needs other code.
fn compatibility(engine: &Engine) -> u64 {
    let mut hasher = DefaultHasher::new();
    engine.wasmtime().precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish()
}

fn name(engine: &Engine, digest: &[u8; 32]) -> String {
    format!("{}-{:016x}.artefact", hex(digest), compatibility(engine))
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
