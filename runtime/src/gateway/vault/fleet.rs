//! Keys of the whole fleet: of stable random numbers, of compiled code on disk, of the digests of requests. They stay as they are
//! when the master key is replaced. Versions before them derived all three from the master key: a database from then goes on with
//! the same values, and a new one gets random keys.

use super::sealing::SealingKey;
use super::{Error, MasterKey, MasterKeys};
use crate::store::sealing_key::{self, Wrapped};
use crate::store::tenant::ADMIN;
use crate::store::{self, Store, reseal};

/// The purposes, and the contexts in which the keys were derived.
const KEYS: [(&str, &str); 3] = [
    ("random", "deedbox 2026 random secret"),
    ("artefacts", "deedbox 2026 artefact key"),
    ("digests", "deedbox 2026 request digest key"),
];

/// There is one of each.
const NUMBER: i32 = 1;

#[derive(Debug)]
pub(super) struct FleetKeys {
    pub random: SealingKey,
    pub artefacts: SealingKey,
    pub digests: SealingKey,
}

impl FleetKeys {
    /// Reads the keys, or makes them where there are none. Fails when a master key is missing that this node will need.
    pub async fn open(store: &Store, masters: &MasterKeys) -> Result<Self, Error> {
        for wraps in sealing_key::masters(store).await? {
            masters.needed(&format!("{} sealing keys of this database", wraps.keys), &wraps.master_id)?;
        }
        let keys = match read(store, masters).await? {
            Some(keys) => Some(keys),
            None => {
                let founder = founder(store, masters).await?;
                make(store, masters.current(), founder).await?;
                read(store, masters).await?
            }
        };
        keys.ok_or_else(|| store::Error::Corrupt("the keys of the fleet are gone again".to_owned()).into())
    }
}

async fn read(store: &Store, masters: &MasterKeys) -> Result<Option<FleetKeys>, Error> {
    let mut keys = Vec::new();
    for (purpose, _) in KEYS {
        let Some(row) = sealing_key::newest(store, ADMIN, purpose).await? else { return Ok(None) };
        keys.push(masters.unwrapped(&row)?);
    }
    let keys = <[SealingKey; KEYS.len()]>::try_from(keys).ok();
    Ok(keys.map(|[random, artefacts, digests]| FleetKeys { random, artefacts, digests }))
}

/// Makes the keys that are missing: from the founder, or by chance where there is none.
pub(super) async fn make(store: &Store, current: &MasterKey, founder: Option<&MasterKey>) -> Result<(), store::Error> {
    for (purpose, context) in KEYS {
        let key = founder.map_or_else(SealingKey::random, |founder| founder.founding(context));
        let row: Wrapped = current.wrap(ADMIN, purpose, NUMBER, &key);
        // Another node may have been quicker; then its key is the fleet's.
        sealing_key::create(store, ADMIN, &row).await?;
    }
    Ok(())
}

/// The master key from which nodes before the data keys have derived what is in use; none for a database that nobody has used.
async fn founder<'a>(store: &Store, masters: &'a MasterKeys) -> Result<Option<&'a MasterKey>, Error> {
    let used = reseal::masters_of_secrets(store).await?;
    let known = masters.all().find(|key| used.contains(&key.id()));
    match (known, used.first()) {
        (Some(key), _) => Ok(Some(key)),
        (None, Some(id)) => masters.needed("secrets of this database", id).map(Some),
        (None, None) => Ok(sealing_key::in_use(store).await?.then(|| masters.current())),
    }
}
