//! Credentials: sealed with XChaCha20-Poly1305 under a key that is not in the database, bound to their tenant and name,
//! and opened only to be put into a request.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chacha20poly1305::aead::{Aead, AeadCore, KeyInit, OsRng, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::mask::Mask;
use crate::clock::Clock;
use crate::store::{self, Store};

const NONCE_BYTES: usize = 24;

/// How long an opened credential is kept in memory: a new value is in use everywhere after this time.
const KEEP: Duration = Duration::from_secs(5);

/// A credential's value. Its memory is wiped when the last copy is dropped; it cannot be shown.
#[derive(Clone)]
pub struct Secret(Arc<(Zeroizing<String>, Mask)>);

impl Secret {
    pub(super) fn new(value: String) -> Self {
        let mask = Mask::new(&value);
        Self(Arc::new((Zeroizing::new(value), mask)))
    }

    pub(super) fn expose(&self) -> &str {
        &self.0.0
    }

    pub(super) fn mask(&self) -> &Mask {
        &self.0.1
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// What can go wrong with the master key or a credential.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the master key file {0}: {1}")]
    ReadKey(PathBuf, std::io::Error),
    #[error("cannot write the master key file {0}: {1}")]
    WriteKey(PathBuf, std::io::Error),
    #[error("the master key file {0} must hold 64 hexadecimal digits")]
    KeyFormat(PathBuf),
    #[error("the secret `{0}` was sealed with another master key ({1}): put it again, or use that key")]
    OtherKey(String, String),
    #[error("the secret `{0}` cannot be opened: its stored form was changed")]
    Tampered(String),
    #[error("there is no secret named `{0}`: put it with `deedbox secret set {0}`")]
    Missing(String),
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// The one key that seals all credentials of a fleet.
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; 32]>);

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.id())
    }
}

impl MasterKey {
    /// Reads the key, 64 hexadecimal digits.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::ReadKey(path.to_owned(), e))?;
        let text = Zeroizing::new(text);
        let bytes = data_encoding::HEXLOWER_PERMISSIVE
            .decode(text.trim().as_bytes())
            .ok()
            .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        bytes.map(|b| Self(Zeroizing::new(b))).ok_or_else(|| Error::KeyFormat(path.to_owned()))
    }

    /// Reads the key, or makes one in a file that only its owner can read.
    pub fn read_or_create(path: &Path) -> Result<Self, Error> {
        match Self::create(path) {
            Ok(key) => Ok(key),
            Err(Error::WriteKey(_, e)) if e.kind() == std::io::ErrorKind::AlreadyExists => Self::read(path),
            Err(error) => Err(error),
        }
    }

    fn create(path: &Path) -> Result<Self, Error> {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let failed = |e| Error::WriteKey(path.to_owned(), e);
        let key = XChaCha20Poly1305::generate_key(&mut OsRng);
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        let text = Zeroizing::new(data_encoding::HEXLOWER.encode(&key));
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(Self(Zeroizing::new(key.into())))
    }

    /// Names the key without giving it away.
    pub fn id(&self) -> String {
        let id = blake3::derive_key("deedbox 2026 master key id", &self.0[..]);
        data_encoding::HEXLOWER.encode(&id[..8])
    }

    /// The deployment's secret for stable random numbers.
    pub fn random_secret(&self) -> [u8; 32] {
        blake3::derive_key("deedbox 2026 random secret", &self.0[..])
    }

    /// The key that authenticates compiled code on disk.
    pub fn artefact_key(&self) -> [u8; 32] {
        blake3::derive_key("deedbox 2026 artefact key", &self.0[..])
    }

    /// The key of the digests of requests.
    pub fn digest_key(&self) -> [u8; 32] {
        blake3::derive_key("deedbox 2026 request digest key", &self.0[..])
    }

    /// What a tenant's recorded answers and look-ups are sealed with.
    fn tenant_cipher(&self, tenant: &str) -> XChaCha20Poly1305 {
        let mut hasher = blake3::Hasher::new_derive_key("deedbox 2026 tenant key");
        hasher.update(&self.0[..]).update(tenant.as_bytes());
        XChaCha20Poly1305::new(Key::from_slice(hasher.finalize().as_bytes()))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(Key::from_slice(&self.0[..]))
    }

    fn seal(&self, tenant: &str, name: &str, value: &str) -> store::secret::Sealed {
        let nonce = XChaCha20Poly1305::generate_nonce(&mut OsRng);
        let bound = binding(tenant, name);
        let payload = Payload { msg: value.as_bytes(), aad: &bound };
        // Sealing fails only for values of more than 256 GiB; the API's body limit is far below.
        let sealed = self.cipher().encrypt(&nonce, payload).unwrap_or_default();
        store::secret::Sealed { key_id: self.id(), sealed: [&nonce[..], &sealed[..]].concat() }
    }

    fn open(&self, tenant: &str, name: &str, sealed: &store::secret::Sealed) -> Result<Secret, Error> {
        Ok(Secret::new(self.text(tenant, name, sealed)?))
    }

    fn text(&self, tenant: &str, name: &str, sealed: &store::secret::Sealed) -> Result<String, Error> {
        if sealed.key_id != self.id() {
            return Err(Error::OtherKey(name.to_owned(), sealed.key_id.clone()));
        }
        let tampered = || Error::Tampered(name.to_owned());
        let (nonce, text) = sealed.sealed.split_at_checked(NONCE_BYTES).ok_or_else(tampered)?;
        let bound = binding(tenant, name);
        let payload = Payload { msg: text, aad: &bound };
        let bytes = self.cipher().decrypt(XNonce::from_slice(nonce), payload).map_err(|_| tampered())?;
        String::from_utf8(bytes).map_err(|_| tampered())
    }
}

/// A sealed value cannot be moved to another tenant or name.
fn binding(tenant: &str, name: &str) -> Vec<u8> {
    format!("{tenant}\0{name}").into_bytes()
}

type Opened = HashMap<(String, String), (Duration, Secret)>;

/// Puts and opens the credentials of all tenants.
#[derive(Clone, Debug)]
pub struct Vault {
    store: Store,
    master: MasterKey,
    clock: Arc<dyn Clock>,
    opened: Arc<Mutex<Opened>>,
}

impl Vault {
    pub fn new(store: Store, master: MasterKey, clock: Arc<dyn Clock>) -> Self {
        Self { store, master, clock, opened: Arc::default() }
    }

    /// Seals and stores a value, replacing an older one.
    pub async fn put(&self, tenant: &str, name: &str, value: &str) -> Result<(), store::Error> {
        store::secret::put(&self.store, tenant, name, &self.sealed(tenant, name, value)).await
    }

    /// A credential as it is stored.
    pub fn sealed(&self, tenant: &str, name: &str, value: &str) -> store::secret::Sealed {
        self.master.seal(tenant, name, value)
    }

    /// The key of the digests of requests.
    pub fn digest_key(&self) -> [u8; 32] {
        self.master.digest_key()
    }

    /// Names the key under which [`Vault::seal`] seals.
    pub fn key_id(&self) -> String {
        self.master.id()
    }

    /// Seals bytes with the tenant's key, bound to the id of their row and their place in it.
    pub fn seal(&self, tenant: &str, effect_id: &[u8], place: &str, bytes: &[u8]) -> Vec<u8> {
        let nonce = XChaCha20Poly1305::generate_nonce(&mut OsRng);
        let bound = [effect_id, place.as_bytes()].concat();
        // Sealing fails only for values of more than 256 GiB; recorded answers are far below.
        let sealed = self.master.tenant_cipher(tenant).encrypt(&nonce, Payload { msg: bytes, aad: &bound });
        [&nonce[..], &sealed.unwrap_or_default()[..]].concat()
    }

    pub fn unseal(
        &self,
        tenant: &str,
        effect_id: &[u8],
        place: &str,
        key_id: &str,
        sealed: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let name = || format!("{place} {}", data_encoding::HEXLOWER.encode(effect_id));
        if key_id != self.master.id() {
            return Err(Error::OtherKey(name(), key_id.to_owned()));
        }
        let tampered = || Error::Tampered(name());
        let (nonce, text) = sealed.split_at_checked(NONCE_BYTES).ok_or_else(tampered)?;
        let bound = [effect_id, place.as_bytes()].concat();
        let payload = Payload { msg: text, aad: &bound };
        self.master.tenant_cipher(tenant).decrypt(XNonce::from_slice(nonce), payload).map_err(|_| tampered())
    }

    pub(super) async fn open(&self, tenant: &str, name: &str) -> Result<Secret, Error> {
        let place = (tenant.to_owned(), name.to_owned());
        if let Some(secret) = self.remembered(&place) {
            return Ok(secret);
        }
        let sealed = store::secret::find(&self.store, tenant, name).await?;
        let sealed = sealed.ok_or_else(|| Error::Missing(name.to_owned()))?;
        let secret = self.master.open(tenant, name, &sealed)?;
        let now = self.clock.elapsed();
        let mut opened = self.opened.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        opened.retain(|_, (at, _)| now.saturating_sub(*at) < KEEP);
        opened.insert(place, (now, secret.clone()));
        Ok(secret)
    }

    /// The value of a secret that was read together with what it is needed for, so that a new value counts at once.
    pub(super) fn open_sealed(
        &self,
        tenant: &str,
        name: &str,
        sealed: &store::secret::Sealed,
    ) -> Result<Zeroizing<String>, Error> {
        self.master.text(tenant, name, sealed).map(Zeroizing::new)
    }

    fn remembered(&self, place: &(String, String)) -> Option<Secret> {
        let opened = self.opened.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (at, secret) = opened.get(place)?;
        (self.clock.elapsed().saturating_sub(*at) < KEEP).then(|| secret.clone())
    }
}
