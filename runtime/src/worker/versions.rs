//! Activity versions with their policies read. A version never changes, so it is read once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::policy::Policy;
use crate::store::lease::Leased;
use crate::store::{self, Store};

/// Versions kept in memory; at the limit all are read anew.
const MAX_KEPT: usize = 4096;

/// What a run needs of its activity's version.
#[derive(Debug)]
pub struct Version {
    pub digest: [u8; 32],
    pub export: String,
    pub policy: Arc<Policy>,
}

#[derive(Debug, Default)]
pub struct Versions(Mutex<HashMap<(String, String, i32), Arc<Version>>>);

impl Versions {
    pub async fn get(&self, store: &Store, leased: &Leased) -> Result<Arc<Version>, store::Error> {
        let place = (leased.tenant.clone(), leased.activity.clone(), leased.version);
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&place) {
            return Ok(known.clone());
        }
        let version = Arc::new(read(store, leased).await?);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(place, version.clone());
        Ok(version)
    }
}

async fn read(store: &Store, leased: &Leased) -> Result<Version, store::Error> {
    let corrupt =
        |what: &str| store::Error::Corrupt(format!("{what} of {} version {}", leased.activity, leased.version));
    let found = store::activity::find(store, &leased.tenant, &leased.activity, leased.version).await?;
    let found = found.ok_or_else(|| corrupt("the row"))?;
    let policy = Policy::parse(&found.policy).map_err(|_| corrupt("the policy"))?;
    Ok(Version {
        digest: found.digest.try_into().map_err(|_| corrupt("the digest"))?,
        export: found.export,
        policy: Arc::new(policy),
    })
}
