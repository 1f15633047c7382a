//! A tenant's data key: what its secrets and recorded answers are sealed with. Each sealed value names the key by its id, `k` and
//! a number; a value from before there were data keys names a master key instead.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::sealing::SealingKey;
use crate::store::secret::Sealed;

/// An opened key. Cheap to copy.
#[derive(Clone, Debug)]
pub struct DataKey {
    number: i32,
    tenant: Arc<str>,
    key: SealingKey,
}

impl DataKey {
    pub(super) fn new(tenant: &str, number: i32, key: SealingKey) -> Self {
        Self { number, tenant: tenant.into(), key }
    }

    pub(super) fn number(&self) -> i32 {
        self.number
    }

    /// What sealed values name it by.
    pub fn id(&self) -> String {
        format!("k{}", self.number)
    }

    pub fn seal_secret(&self, name: &str, value: &str) -> Sealed {
        Sealed { key_id: self.id(), sealed: self.key.seal(&self.secret_place(name), value.as_bytes()) }
    }

    pub(super) fn open_secret(&self, name: &str, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.key.open(&self.secret_place(name), sealed)
    }

    /// Seals bytes, bound to the id of their row and their place in it.
    pub fn seal(&self, id: &[u8], place: &str, bytes: &[u8]) -> Vec<u8> {
        self.key.seal(&self.value_place(id, place), bytes)
    }

    pub(super) fn open(&self, id: &[u8], place: &str, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.key.open(&self.value_place(id, place), sealed)
    }

    fn secret_place(&self, name: &str) -> Vec<u8> {
        format!("secret\0{}\0{name}", self.tenant).into_bytes()
    }

    /// Neither a tenant nor a place has a zero byte in it, and ids come last.
    fn value_place(&self, id: &[u8], place: &str) -> Vec<u8> {
        [format!("value\0{}\0{place}\0", self.tenant).as_bytes(), id].concat()
    }
}

/// The number in a data key's id. None for the id of a master key.
pub(super) fn number_of(key_id: &str) -> Option<i32> {
    key_id.strip_prefix('k')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_value_cannot_be_moved() {
        let bytes = SealingKey::random();
        let (acme, globex) = (DataKey::new("acme", 3, bytes.clone()), DataKey::new("globex", 3, bytes));
        let secret = acme.seal_secret("stripe", "sk_1");
        assert_eq!(secret.key_id, "k3");
        assert_eq!(acme.open_secret("stripe", &secret.sealed).as_deref().map(Vec::as_slice), Some(&b"sk_1"[..]));
        assert!(acme.open_secret("other", &secret.sealed).is_none());
        assert!(globex.open_secret("stripe", &secret.sealed).is_none());
        let body = acme.seal(&[1; 32], "body", b"{}");
        assert!(acme.open(&[1; 32], "body", &body).is_some());
        let elsewhere = [acme.open(&[2; 32], "body", &body), acme.open(&[1; 32], "headers", &body)];
        assert!(elsewhere.iter().all(Option::is_none) && globex.open(&[1; 32], "body", &body).is_none());
    }

    #[test]
    fn ids_of_data_keys_are_told_from_those_of_master_keys() {
        assert_eq!((number_of("k1"), number_of("k27")), (Some(1), Some(27)));
        for other in ["0123456789abcdef", "k", "kk1", "k1x", ""] {
            assert_eq!(number_of(other), None, "{other}");
        }
    }
}
