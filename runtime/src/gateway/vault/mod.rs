//! Credentials, and all else that is kept sealed. A master key, which is not in the database, wraps the keys that are: one for each
//! tenant, which seals its secrets and recorded answers, and those of the fleet. A credential is opened only to be put into a
//! request, or to check or make a signature. Nothing here may be logged or shown but ids.

mod data_key;
mod fleet;
mod keyring;
mod master;
mod rotate;
mod sealing;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zeroize::Zeroizing;

pub use data_key::DataKey;
pub use master::{MasterKey, MasterKeys, parse_text};
pub use rotate::{ANSWER_PLACE, Rotated};

use super::mask::Mask;
use crate::clock::Clock;
use crate::store::secret::Sealed;
use crate::store::{self, Store};
use fleet::FleetKeys;
use keyring::Keyring;

/// How long an opened credential is kept in memory: a new value is in use everywhere after this time.
const KEEP: Duration = Duration::from_secs(5);

/// A credential's value. Its memory is wiped when the last copy is dropped; it cannot be shown.
#[derive(Clone)]
pub struct Secret(Arc<(Zeroizing<String>, Mask)>);

impl Secret {
    pub(super) fn new(value: Zeroizing<String>) -> Self {
        let mask = Mask::new(&value);
        Self(Arc::new((value, mask)))
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

/// What can go wrong with a master key, a data key or a sealed value.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the master key file {0}: {1}")]
    ReadKey(PathBuf, std::io::Error),
    #[error("cannot write the master key file {0}: {1}")]
    WriteKey(PathBuf, std::io::Error),
    #[error(
        "the master key {0} must be 64 hexadecimal digits or the base64 of 32 bytes: `openssl rand -hex 32` makes one"
    )]
    KeyFormat(String),
    #[error(
        "{what}: sealed with the master key {needed}, which is not given here; given: {given}. Give that key as well, with \
         --other-master-key-file or its like, until `deedbox key rotate` has put another in its place; if it is lost, see \
         docs/secrets.md"
    )]
    MissingMaster { what: String, needed: String, given: String },
    #[error("{0}: cannot be opened, its stored form was changed")]
    Tampered(String),
    #[error("there is no secret named `{0}`: put it with `deedbox secret set {0}`")]
    Missing(String),
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// What a tenant or its guest may read of it.
    pub(super) fn for_tenant(&self) -> String {
        match self {
            Self::Missing(_) | Self::Tampered(_) => self.to_string(),
            Self::MissingMaster { what, .. } => {
                format!("{what}: this node has not the master key that it needs for it")
            }
            _ => "a credential cannot be opened on this node".to_owned(),
        }
    }
}

type Opened = HashMap<(String, String), (Duration, Secret)>;

/// Puts and opens the credentials of all tenants.
#[derive(Clone, Debug)]
pub struct Vault {
    keys: Arc<Keyring>,
    fleet: Arc<FleetKeys>,
    clock: Arc<dyn Clock>,
    opened: Arc<Mutex<Opened>>,
}

impl Vault {
    /// Reads the fleet's keys, or makes them in a database that has none. Fails when a master key is missing that wraps a key of
    /// this database.
    pub async fn open(store: Store, masters: MasterKeys, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let fleet = Arc::new(FleetKeys::open(&store, &masters).await?);
        let keys = Arc::new(Keyring::new(store, masters, clock.clone()));
        Ok(Self { keys, fleet, clock, opened: Arc::default() })
    }

    /// The deployment's secret for stable random numbers.
    pub fn random_secret(&self) -> Zeroizing<[u8; 32]> {
        self.fleet.random.array()
    }

    /// The key that authenticates compiled code on disk.
    pub fn artefact_key(&self) -> Zeroizing<[u8; 32]> {
        self.fleet.artefacts.array()
    }

    /// The key of the digests of requests.
    pub fn digest_key(&self) -> Zeroizing<[u8; 32]> {
        self.fleet.digests.array()
    }

    /// The key that seals for the tenant now.
    pub async fn current(&self, tenant: &str) -> Result<DataKey, Error> {
        self.keys.current(tenant).await
    }

    /// Gives the tenant a new data key and names it. Older ones still open what they have sealed.
    pub async fn renew(&self, tenant: &str) -> Result<String, Error> {
        Ok(self.keys.renew(tenant).await?.id())
    }

    /// Seals and stores a value, replacing an older one.
    pub async fn put(&self, tenant: &str, name: &str, value: &str) -> Result<(), Error> {
        let sealed = self.sealed(tenant, name, value).await?;
        Ok(store::secret::put(self.keys.store(), tenant, name, &sealed).await?)
    }

    /// A credential as it is stored.
    pub async fn sealed(&self, tenant: &str, name: &str, value: &str) -> Result<Sealed, Error> {
        Ok(self.current(tenant).await?.seal_secret(name, value))
    }

    /// Opens what [`DataKey::seal`] sealed: bytes of the row of this id, at this place in it.
    pub async fn unseal(
        &self,
        tenant: &str,
        id: &[u8],
        place: &str,
        key_id: &str,
        sealed: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let name = || format!("{place} {}", data_encoding::HEXLOWER.encode(id));
        let opened = match data_key::number_of(key_id) {
            Some(number) => self.keys.numbered(tenant, number).await?.open(id, place, sealed),
            None => self.keys.masters().needed(&name(), key_id)?.open_value(tenant, id, place, sealed),
        };
        opened.map(|mut bytes| std::mem::take(&mut *bytes)).ok_or_else(|| Error::Tampered(name()))
    }

    pub(super) async fn open_named(&self, tenant: &str, name: &str) -> Result<Secret, Error> {
        let place = (tenant.to_owned(), name.to_owned());
        if let Some(secret) = self.remembered(&place) {
            return Ok(secret);
        }
        let sealed = store::secret::find(self.keys.store(), tenant, name).await?;
        let sealed = sealed.ok_or_else(|| Error::Missing(name.to_owned()))?;
        let secret = Secret::new(self.open_sealed(tenant, name, &sealed).await?);
        let now = self.clock.elapsed();
        let mut opened = self.opened();
        opened.retain(|_, (at, _)| now.saturating_sub(*at) < KEEP);
        opened.insert(place, (now, secret.clone()));
        Ok(secret)
    }

    /// The value of a secret that was read together with what it is needed for, so that a new value counts at once.
    pub(super) async fn open_sealed(
        &self,
        tenant: &str,
        name: &str,
        sealed: &Sealed,
    ) -> Result<Zeroizing<String>, Error> {
        let what = || format!("the secret `{name}`");
        let opened = match data_key::number_of(&sealed.key_id) {
            Some(number) => self.keys.numbered(tenant, number).await?.open_secret(name, &sealed.sealed),
            None => {
                let master = self.keys.masters().needed(&what(), &sealed.key_id)?;
                master.open_secret(tenant, name, &sealed.sealed)
            }
        };
        let text = opened.and_then(|mut bytes| String::from_utf8(std::mem::take(&mut *bytes)).ok());
        text.map(Zeroizing::new).ok_or_else(|| Error::Tampered(what()))
    }

    fn remembered(&self, place: &(String, String)) -> Option<Secret> {
        let opened = self.opened();
        let (at, secret) = opened.get(place)?;
        (self.clock.elapsed().saturating_sub(*at) < KEEP).then(|| secret.clone())
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the fleet's keys of a database as a node of a version before them would have derived them from this master key, whatever
/// is in it: so that several databases have the same.
pub async fn found(store: &Store, master: &MasterKey) -> Result<(), store::Error> {
    fleet::make(store, master, Some(master)).await
}
