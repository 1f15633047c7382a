//! The data keys of all tenants: made when they are first needed, opened once, and kept for a bounded number of tenants. Many
//! nodes make a key at once: the first row counts, and all read it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::data_key::DataKey;
use super::sealing::SealingKey;
use super::{Error, MasterKeys};
use crate::clock::Clock;
use crate::store::sealing_key::{self, DATA, Wrapped};
use crate::store::{self, Store};

/// Opened keys in memory; beyond it the one that was used longest ago is wiped, and opened again when it is needed.
const MOST: usize = 4096;

/// How often it is asked whether the tenant has a newer key.
const LOOK: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Keyring {
    store: Store,
    masters: MasterKeys,
    clock: std::sync::Arc<dyn Clock>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// By tenant and number, with the time of its last use.
    keys: HashMap<(String, i32), (Duration, DataKey)>,
    /// The number of the newest, and when it was asked for.
    newest: HashMap<String, (Duration, i32)>,
}

impl Keyring {
    pub fn new(store: Store, masters: MasterKeys, clock: std::sync::Arc<dyn Clock>) -> Self {
        Self { store, masters, clock, held: Mutex::default() }
    }

    pub fn masters(&self) -> &MasterKeys {
        &self.masters
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The key that seals for the tenant now.
    pub async fn current(&self, tenant: &str) -> Result<DataKey, Error> {
        let (known, fresh) = self.newest_held(tenant);
        if let (Some(key), true) = (&known, fresh) {
            return Ok(key.clone());
        }
        match self.newest(tenant).await {
            // What an older key of the tenant seals opens as well.
            Err(Error::Store(error)) if error.is_transient() && known.is_some() => {
                tracing::debug!(tenant.id = tenant, %error, "the newest key could not be asked for");
                known.ok_or(Error::Store(error))
            }
            found => found,
        }
    }

    /// The key of that number.
    pub async fn numbered(&self, tenant: &str, number: i32) -> Result<DataKey, Error> {
        let now = self.clock.elapsed();
        if let Some((used, key)) = self.held().keys.get_mut(&(tenant.to_owned(), number)) {
            *used = now;
            return Ok(key.clone());
        }
        let row = sealing_key::find(&self.store, tenant, DATA, number).await?;
        let missing = || store::Error::Corrupt(format!("the data key k{number} of `{tenant}` is not there"));
        self.opened(&row.ok_or_else(missing)?)
    }

    /// Gives the tenant a new key, which seals from now on: on this node at once, on others within half a minute.
    pub async fn renew(&self, tenant: &str) -> Result<DataKey, Error> {
        let newest = sealing_key::newest(&self.store, tenant, DATA).await?;
        let number = newest.map_or(0, |row| row.number) + 1;
        self.make(tenant, number).await?;
        self.newest(tenant).await
    }

    async fn newest(&self, tenant: &str) -> Result<DataKey, Error> {
        let mut row = sealing_key::newest(&self.store, tenant, DATA).await?;
        if row.is_none() {
            self.make(tenant, 1).await?;
            row = sealing_key::newest(&self.store, tenant, DATA).await?;
        }
        let gone = || store::Error::Corrupt(format!("the data key of `{tenant}` is gone again"));
        let key = self.opened(&row.ok_or_else(gone)?)?;
        self.held().newest.insert(tenant.to_owned(), (self.clock.elapsed(), key.number()));
        Ok(key)
    }

    async fn make(&self, tenant: &str, number: i32) -> Result<(), Error> {
        let row = self.masters.current().wrap(tenant, DATA, number, &SealingKey::random());
        // Another node may have been quicker; then its key is the tenant's.
        sealing_key::create(&self.store, tenant, &row).await?;
        Ok(())
    }

    fn opened(&self, row: &Wrapped) -> Result<DataKey, Error> {
        let now = self.clock.elapsed();
        let place = (row.tenant.clone(), row.number);
        if let Some((used, key)) = self.held().keys.get_mut(&place) {
            *used = now;
            return Ok(key.clone());
        }
        let key = DataKey::new(&row.tenant, row.number, self.masters.unwrapped(row)?);
        let mut held = self.held();
        if held.keys.len() >= MOST {
            let oldest = held.keys.iter().min_by_key(|(_, (used, _))| *used).map(|(place, _)| place.clone());
            if let Some(place) = oldest {
                held.keys.remove(&place);
                held.newest.remove(&place.0);
            }
        }
        held.keys.insert(place, (now, key.clone()));
        Ok(key)
    }

    /// The newest key as far as it is known, and whether that is known well enough.
    fn newest_held(&self, tenant: &str) -> (Option<DataKey>, bool) {
        let now = self.clock.elapsed();
        let mut held = self.held();
        let Some((at, number)) = held.newest.get(tenant).copied() else { return (None, false) };
        let key = held.keys.get_mut(&(tenant.to_owned(), number)).map(|(used, key)| {
            *used = now;
            key.clone()
        });
        (key, now.saturating_sub(at) < LOOK)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
