//! Signatures of modules: what is signed, how keys and signatures are written, and whether a signature is good. Ed25519 as a
//! library has it; nothing of it is computed here. No private key is ever here: whoever signs does so elsewhere.

use data_encoding::{BASE64, HEXLOWER, HEXLOWER_PERMISSIVE};
use ring::signature::{ED25519, UnparsedPublicKey};

pub const KEY_BYTES: usize = 32;
pub const SIGNATURE_BYTES: usize = 64;

/// How a public key begins as a `SubjectPublicKeyInfo` (RFC 8410); the key is the rest.
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";

/// Signatures that are tried to find out whether a key is good for anything.
const TRIES: u16 = 256;

/// Why a text is no key or no signature. The words say what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error(
        "must be an Ed25519 public key: PEM (`openssl pkey -pubout`), or its 32 bytes as 64 hexadecimal digits or in base64"
    )]
    Key,
    #[error("is a key under which anybody can sign: make a new one with `openssl genpkey -algorithm ed25519`")]
    WeakKey,
    #[error("must be the 64 bytes of an Ed25519 signature, as 128 hexadecimal digits or in base64")]
    Signature,
}

/// An Ed25519 public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(pub [u8; KEY_BYTES]);

/// An Ed25519 signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature(pub [u8; SIGNATURE_BYTES]);

/// What is signed for a module of this BLAKE3 digest. The first line keeps a signature of something else from being one of a
/// module.
pub fn message(digest: &[u8; 32]) -> String {
    format!("deedbox module v1\n{}\n", HEXLOWER.encode(digest))
}

impl PublicKey {
    /// Reads a key.
    ///
    /// # Errors
    /// When it is none, or one of the few under which signatures can be made by anybody.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let text = text.trim();
        let bytes = if text.starts_with(PEM_BEGIN) { pem(text) } else { plain(text) };
        let key = Self(bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(Malformed::Key)?);
        if key.is_weak() { Err(Malformed::WeakKey) } else { Ok(key) }
    }

    /// Whether the signature was made with this key for the module.
    pub fn signed(&self, digest: &[u8; 32], signature: &Signature) -> bool {
        self.verifies(message(digest).as_bytes(), signature)
    }

    fn verifies(&self, message: &[u8], signature: &Signature) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, &signature.0).is_ok()
    }

    /// A key of small order, zeros for example. With such a key the signature of an identity point and a zero holds for one
    /// message in eight at least; with any other it holds for none.
    fn is_weak(&self) -> bool {
        let mut nobodys = [0; SIGNATURE_BYTES];
        nobodys[0] = 1;
        (0..TRIES).any(|number| self.verifies(&number.to_le_bytes(), &Signature(nobodys)))
    }
}

impl Signature {
    /// Reads a signature.
    ///
    /// # Errors
    /// When it is none; whether it is good is not asked.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let bytes = plain(text.trim()).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(Malformed::Signature)
    }

    /// As it goes to the API: hexadecimal digits.
    pub fn to_hex(self) -> String {
        HEXLOWER.encode(&self.0)
    }
}

/// Hexadecimal digits or base64. No key and no signature has a length at which both could be meant.
fn plain(text: &str) -> Option<Vec<u8>> {
    let is_hex = text.len() == 2 * KEY_BYTES || text.len() == 2 * SIGNATURE_BYTES;
    if is_hex { HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok() } else { BASE64.decode(text.as_bytes()).ok() }
}

fn pem(text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix(PEM_BEGIN)?.strip_suffix(PEM_END)?;
    let inner: String = inner.split_ascii_whitespace().collect();
    let key = BASE64.decode(inner.as_bytes()).ok()?;
    key.strip_prefix(&SPKI).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use ring::signature::{Ed25519KeyPair, KeyPair};

    use super::*;

    fn pair(seed: u8) -> (PublicKey, Ed25519KeyPair) {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
        (PublicKey(pair.public_key().as_ref().try_into().unwrap()), pair)
    }

    fn sign(pair: &Ed25519KeyPair, message: &[u8]) -> Signature {
        Signature(pair.sign(message).as_ref().try_into().unwrap())
    }

    #[test]
    fn a_signature_is_good_for_its_module_and_its_key_alone() {
        let ((key, pair), (other, _)) = (pair(1), pair(2));
        let digest = [7; 32];
        let good = sign(&pair, message(&digest).as_bytes());
        assert!(key.signed(&digest, &good));
        assert!(!other.signed(&digest, &good) && !key.signed(&[8; 32], &good));
        for at in [0, 31, 32, 63] {
            let mut bent = good;
            bent.0[at] ^= 1;
            assert!(!key.signed(&digest, &bent), "{at}");
        }
        for other in [&digest[..], HEXLOWER.encode(&digest).as_bytes(), message(&digest).trim_end().as_bytes()] {
            assert!(!key.signed(&digest, &sign(&pair, other)), "{other:?}");
        }
    }

    /// The second half of a signature has one spelling.
    #[test]
    fn a_signature_is_not_good_in_another_spelling() {
        const ORDER: [u8; 32] = [
            0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
        ];
        let (key, pair) = pair(3);
        let mut signature = sign(&pair, message(&[7; 32]).as_bytes());
        let mut carry = 0;
        for (byte, more) in signature.0[32..].iter_mut().zip(ORDER) {
            let sum = u16::from(*byte) + u16::from(more) + carry;
            (*byte, carry) = ((sum & 0xff) as u8, sum >> 8);
        }
        assert!(!key.signed(&[7; 32], &signature));
    }

    #[test]
    fn what_is_signed_is_two_lines() {
        assert_eq!(message(&[0xab; 32]), format!("deedbox module v1\n{}\n", "ab".repeat(32)));
    }

    #[test]
    fn a_key_is_written_in_three_ways() {
        let (key, _) = pair(4);
        let pem = format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", BASE64.encode(&[&SPKI[..], &key.0].concat()));
        let hex = HEXLOWER.encode(&key.0);
        for text in [&pem, &pem.replace('\n', "\r\n"), &hex, &hex.to_uppercase(), &BASE64.encode(&key.0)] {
            assert_eq!(PublicKey::parse(text), Ok(key), "{text}");
        }
        for wrong in [
            "",
            "key",
            &hex[2..],
            &format!("{hex}00"),
            &pem.replace("MCow", "MCox"),
            PEM_BEGIN,
            &BASE64.encode(&[0; 64]),
        ] {
            assert_eq!(PublicKey::parse(wrong), Err(Malformed::Key), "{wrong}");
        }
    }

    #[test]
    fn a_key_under_which_anybody_can_sign_is_none() {
        let one = format!("01{}", "00".repeat(31));
        let minus_one = format!("ec{}7f", "ff".repeat(30));
        let eighth = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a";
        let other_eighth = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05";
        for weak in [eighth, other_eighth, &"00".repeat(32), &one, &minus_one] {
            assert_eq!(PublicKey::parse(weak), Err(Malformed::WeakKey), "{weak}");
        }
        for seed in 0..4 {
            assert!(!pair(seed).0.is_weak());
        }
    }

    #[test]
    fn a_signature_is_written_in_two_ways() {
        let signature = Signature([0xfb; 64]);
        assert_eq!(Signature::parse(&signature.to_hex()), Ok(signature));
        assert_eq!(Signature::parse(&format!("{}\n", BASE64.encode(&signature.0))), Ok(signature));
        for wrong in ["", "x", &signature.to_hex()[2..], &BASE64.encode(&[0; 63])] {
            assert_eq!(Signature::parse(wrong), Err(Malformed::Signature), "{wrong}");
        }
    }
}
