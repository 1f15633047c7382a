//! Modules that are kept ready in memory, by the digest of their bytes: as many as may be, by number and by the bytes of their
//! code. The one that was used longest ago goes first. What an attempt is using stays alive until it ends, here or not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

type Digest = [u8; 32];

/// Where one module is, or will be once someone has loaded it.
pub type Place<T> = Arc<OnceCell<Arc<T>>>;

#[derive(Debug)]
pub struct Loaded<T> {
    max_modules: usize,
    max_bytes: u64,
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    /// Counts the uses.
    clock: u64,
    slots: HashMap<Digest, Slot<T>>,
}

#[derive(Debug)]
struct Slot<T> {
    used: u64,
    /// 0 until it is loaded.
    bytes: u64,
    place: Place<T>,
}

impl<T> Loaded<T> {
    pub fn new(max_modules: usize, max_bytes: u64) -> Self {
        Self { max_modules, max_bytes, inner: Mutex::new(Inner { clock: 0, slots: HashMap::new() }) }
    }

    /// The place of a module, which becomes the one that was used last.
    pub fn place(&self, digest: Digest) -> Place<T> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let used = inner.clock;
        if inner.slots.len() >= self.max_modules && !inner.slots.contains_key(&digest) {
            inner.drop_oldest_but(&digest);
        }
        let new = || Slot { used, bytes: 0, place: Place::default() };
        let slot = inner.slots.entry(digest).or_insert_with(new);
        slot.used = used;
        slot.place.clone()
    }

    /// Says how large the module at a place is. Others make room for it; it stays itself, however large.
    pub fn weigh(&self, digest: Digest, bytes: u64) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = inner.slots.get_mut(&digest) {
            slot.bytes = bytes;
        }
        while inner.bytes() > self.max_bytes && inner.drop_oldest_but(&digest) {}
    }
}

impl<T> Inner<T> {
    fn bytes(&self) -> u64 {
        self.slots.values().map(|slot| slot.bytes).sum()
    }

    /// False when there is no other.
    fn drop_oldest_but(&mut self, kept: &Digest) -> bool {
        let others = self.slots.iter().filter(|(digest, _)| *digest != kept);
        let oldest = others.min_by_key(|(_, slot)| slot.used).map(|(digest, _)| *digest);
        oldest.is_some_and(|digest| self.slots.remove(&digest).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(loaded: &Loaded<u8>, number: u8, bytes: u64) {
        let place = loaded.place([number; 32]);
        if place.set(Arc::new(number)).is_ok() {
            loaded.weigh([number; 32], bytes);
        }
    }

    fn there(loaded: &Loaded<u8>) -> Vec<u8> {
        let inner = loaded.inner.lock().unwrap();
        let mut there: Vec<u8> = inner.slots.keys().map(|digest| digest[0]).collect();
        there.sort_unstable();
        there
    }

    #[test]
    fn beyond_the_bytes_the_one_that_was_used_longest_ago_goes() {
        let loaded = Loaded::new(100, 10);
        (1..=3).for_each(|number| load(&loaded, number, 3));
        load(&loaded, 1, 3);
        load(&loaded, 4, 3);
        assert_eq!(there(&loaded), [1, 3, 4]);
        load(&loaded, 5, 10);
        assert_eq!(there(&loaded), [5]);
        load(&loaded, 6, 11);
        assert_eq!(there(&loaded), [6], "one that is larger than all may be must still run");
        load(&loaded, 7, 1);
        assert_eq!(there(&loaded), [7]);
    }

    #[test]
    fn beyond_the_number_the_one_that_was_used_longest_ago_goes() {
        let loaded = Loaded::new(2, u64::MAX);
        load(&loaded, 1, 1);
        load(&loaded, 2, 1);
        load(&loaded, 1, 1);
        load(&loaded, 3, 1);
        assert_eq!(there(&loaded), [1, 3]);
    }
}
