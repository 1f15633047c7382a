//! Who may compile now. A node compiles a few components at once, and no tenant takes all of its places: one who uploads what
//! compiles for long must not keep the others from running.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub struct Places {
    all: Arc<Semaphore>,
    of_one: usize,
    tenants: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The right to compile, until it is dropped.
#[derive(Debug)]
pub struct Place {
    _of_tenant: OwnedSemaphorePermit,
    _of_node: OwnedSemaphorePermit,
}

impl Places {
    /// `all`: at least 1. Where there are several, one is never a tenant's that has all others.
    pub fn new(all: usize) -> Self {
        let of_one = all.saturating_sub(1).max(1);
        Self { all: Arc::new(Semaphore::new(all)), of_one, tenants: Mutex::default() }
    }

    /// Waits for a place. Who waits behind others of the same tenant does not stand in the way of another's.
    pub async fn take(&self, tenant: &str) -> Result<Place, AcquireError> {
        let of_tenant = self.of(tenant).acquire_owned().await?;
        let of_node = self.all.clone().acquire_owned().await?;
        Ok(Place { _of_tenant: of_tenant, _of_node: of_node })
    }

    fn of(&self, tenant: &str) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.retain(|_, places| places.strong_count() > 0);
        if let Some(places) = tenants.get(tenant).and_then(Weak::upgrade) {
            return places;
        }
        let places = Arc::new(Semaphore::new(self.of_one));
        tenants.insert(tenant.to_owned(), Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn now(places: &Places, tenant: &str) -> Option<Place> {
        places.take(tenant).now_or_never().map(|taken| taken.unwrap())
    }

    #[test]
    fn a_tenant_leaves_a_place_to_others() {
        let places = Places::new(3);
        let noisy = [now(&places, "noisy").unwrap(), now(&places, "noisy").unwrap()];
        assert!(now(&places, "noisy").is_none());
        let quiet = now(&places, "quiet").unwrap();
        assert!(now(&places, "third").is_none());
        drop(noisy);
        assert!(now(&places, "third").is_some());
        drop(quiet);
        assert!(places.of("noisy").available_permits() == 2);
    }

    #[test]
    fn a_single_place_is_everyones() {
        let places = Places::new(1);
        let first = now(&places, "a").unwrap();
        assert!(now(&places, "b").is_none());
        drop(first);
        assert!(now(&places, "b").is_some());
    }

    #[test]
    fn tenants_that_are_gone_are_forgotten() {
        let places = Places::new(2);
        for tenant in 0..100 {
            now(&places, &tenant.to_string()).unwrap();
        }
        assert!(places.tenants.lock().unwrap().len() <= 2);
    }
}
