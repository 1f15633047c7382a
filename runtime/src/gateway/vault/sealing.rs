//! Sealing with XChaCha20-Poly1305, and the keys that it is done with. A key must never leave its memory but sealed with another.

use std::fmt;
use std::sync::Arc;

use chacha20poly1305::aead::{Aead, AeadCore, KeyInit, OsRng, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use zeroize::{Zeroize, Zeroizing};

const NONCE_BYTES: usize = 24;

/// What a key is long, in bytes.
pub const KEY_BYTES: usize = 32;

/// A key. Its one copy lies on the heap and is wiped with its last holder.
#[derive(Clone)]
pub struct SealingKey(Arc<Zeroizing<Vec<u8>>>);

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey")
    }
}

impl SealingKey {
    /// None when it has not the length of a key.
    pub fn of(bytes: Zeroizing<Vec<u8>>) -> Option<Self> {
        (bytes.len() == KEY_BYTES).then(|| Self(Arc::new(bytes)))
    }

    pub fn random() -> Self {
        let mut fresh = XChaCha20Poly1305::generate_key(&mut OsRng);
        let key = Self(Arc::new(Zeroizing::new(fresh.to_vec())));
        fresh.as_mut_slice().zeroize();
        key
    }

    /// Another key that follows from this one, these bytes and the context.
    pub fn derived(&self, context: &str, bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        hasher.update(&self.0).update(bytes);
        let mut key = Zeroizing::new(vec![0; KEY_BYTES]);
        let mut output = hasher.finalize_xof();
        output.fill(&mut key);
        output.zeroize();
        hasher.zeroize();
        Self(Arc::new(key))
    }

    /// A copy for what takes a key as an array.
    pub fn array(&self) -> Zeroizing<[u8; KEY_BYTES]> {
        let mut array = Zeroizing::new([0; KEY_BYTES]);
        array.copy_from_slice(&self.0);
        array
    }

    /// The key itself, to be sealed with another.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Nonce and sealed bytes. They open only with the same `bound`.
    pub fn seal(&self, bound: &[u8], bytes: &[u8]) -> Vec<u8> {
        let nonce = XChaCha20Poly1305::generate_nonce(&mut OsRng);
        // Sealing fails only for values of more than 256 GiB; all that is sealed is far below.
        let sealed = self.cipher().encrypt(&nonce, Payload { msg: bytes, aad: bound }).unwrap_or_default();
        [&nonce[..], &sealed[..]].concat()
    }

    /// None when it was sealed with another key or bound to something else, or was changed.
    pub fn open(&self, bound: &[u8], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, text) = sealed.split_at_checked(NONCE_BYTES)?;
        let opened = self.cipher().decrypt(XNonce::from_slice(nonce), Payload { msg: text, aad: bound });
        opened.ok().map(Zeroizing::new)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(Key::from_slice(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_its_key_and_its_place_alone() {
        let (key, other) = (SealingKey::random(), SealingKey::random());
        let sealed = key.seal(b"place", b"value");
        assert_eq!(key.open(b"place", &sealed).as_deref().map(Vec::as_slice), Some(&b"value"[..]));
        assert!(key.open(b"elsewhere", &sealed).is_none() && other.open(b"place", &sealed).is_none());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(key.open(b"place", &changed).is_none(), "byte {at}");
            assert!(key.open(b"place", &sealed[..at]).is_none(), "cut at {at}");
        }
        assert_ne!(sealed, key.seal(b"place", b"value"), "each sealing has a nonce of its own");
    }

    #[test]
    fn a_key_has_its_length_and_is_never_shown() {
        assert!(SealingKey::of(Zeroizing::new(vec![7; 31])).is_none());
        let key = SealingKey::of(Zeroizing::new(vec![0xab; 32])).unwrap();
        assert_eq!(format!("{key:?}"), "SealingKey");
    }
}
