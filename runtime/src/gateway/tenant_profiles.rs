//! The provider profiles of each tenant, read from the ledger's database and kept for a short time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Gateway;
use super::attempt::lock;
use super::provider::{Profile, ProfileError, Profiles};
use crate::store;

/// How long a tenant's profiles are kept in memory: a changed one is in use everywhere after this time.
const KEEP: Duration = Duration::from_secs(5);

/// Tenants whose profiles are kept; beyond it all are read anew.
const MAX_KEPT: usize = 4096;

#[derive(Debug, Default)]
pub struct TenantProfiles(Mutex<HashMap<String, (Duration, Arc<Profiles>)>>);

impl Gateway {
    /// The tenant's own profiles.
    pub async fn profiles_of(&self, tenant: &str) -> Result<Arc<Profiles>, store::Error> {
        let now = self.clock.elapsed();
        if let Some((at, profiles)) = lock(&self.tenant_profiles.0).get(tenant)
            && now.saturating_sub(*at) < KEEP
        {
            return Ok(profiles.clone());
        }
        let profiles = Arc::new(self.read_profiles(tenant).await?);
        let mut kept = lock(&self.tenant_profiles.0);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(tenant.to_owned(), (now, profiles.clone()));
        Ok(profiles)
    }

    /// Reads a profile as a tenant puts it; it may extend one that comes with the program.
    pub fn read_profile(&self, name: &str, text: &str) -> Result<Profile, ProfileError> {
        let file = format!("{name}.toml");
        let profile = Profile::parse(&file, text, Some(&self.profiles))?;
        if profile.name.0 == name {
            return Ok(profile);
        }
        Err(ProfileError { file, message: format!("name: is `{}`, but it is put as `{name}`", profile.name) })
    }

    /// Reads the tenant's profiles anew when they are needed next: one was changed.
    pub fn forget_profiles(&self, tenant: &str) {
        lock(&self.tenant_profiles.0).remove(tenant);
    }

    async fn read_profiles(&self, tenant: &str) -> Result<Profiles, store::Error> {
        let mut profiles = Profiles::default();
        for own in store::provider::list(&self.store, tenant).await? {
            match self.read_profile(&own.provider, &own.profile) {
                Ok(profile) => profiles.insert(profile),
                // It was read when it was put; only another version of the program can make it unreadable.
                Err(error) => tracing::error!(tenant.id = tenant, error = %error, "a provider profile is left out"),
            }
        }
        Ok(profiles)
    }
}
