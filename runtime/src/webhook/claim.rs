//! What a delivery claims: what stands before the body in the text that was signed, and the signatures of which one must be
//! right. The comparison takes as long for a wrong signature as for a right one.

use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use sha2::{Sha256, Sha512};
use utoipa::ToSchema;

/// More signatures of one delivery are not looked at.
const MOST_SIGNATURES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    Sha256,
    Sha512,
}

#[derive(Clone)]
pub struct Claim {
    pub algorithm: Algorithm,
    pub before: Vec<u8>,
    /// Those that could be decoded.
    pub signatures: Vec<Vec<u8>>,
}

impl Claim {
    /// One that does not hold, whatever the key.
    pub const fn nothing() -> Self {
        Self { algorithm: Algorithm::Sha256, before: Vec::new(), signatures: Vec::new() }
    }

    /// Whether the key has made one of the signatures.
    pub fn holds(&self, key: &[u8], body: &[u8]) -> bool {
        match self.algorithm {
            Algorithm::Sha256 => self.is_made_by::<Hmac<Sha256>>(key, body),
            Algorithm::Sha512 => self.is_made_by::<Hmac<Sha512>>(key, body),
        }
    }

    fn is_made_by<M: Mac + KeyInit + Clone>(&self, key: &[u8], body: &[u8]) -> bool {
        // HMAC takes keys of any length.
        let Ok(mut mac) = M::new_from_slice(key) else { return false };
        mac.update(&self.before);
        mac.update(body);
        let mut made = false;
        for signature in self.signatures.iter().take(MOST_SIGNATURES) {
            made |= mac.clone().verify_slice(signature).is_ok();
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    /// Test case 2 of RFC 4231.
    const KEY: &[u8] = b"Jefe";
    const SHA256: &str = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    const SHA512: &str = concat!(
        "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554",
        "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
    );

    fn claim(algorithm: Algorithm, signatures: &[&str]) -> Claim {
        let signatures = signatures.iter().map(|hex| HEXLOWER.decode(hex.as_bytes()).unwrap()).collect();
        Claim { algorithm, before: b"what do ya ".to_vec(), signatures }
    }

    #[test]
    fn the_right_signature_holds_wherever_it_stands() {
        let body = b"want for nothing?";
        assert!(claim(Algorithm::Sha256, &[SHA256]).holds(KEY, body));
        assert!(claim(Algorithm::Sha512, &[SHA512]).holds(KEY, body));
        assert!(claim(Algorithm::Sha256, &[&SHA256[2..], &"00".repeat(32), SHA256]).holds(KEY, body));
    }

    #[test]
    fn nothing_else_holds() {
        let body = b"want for nothing?";
        let right = claim(Algorithm::Sha256, &[SHA256]);
        assert!(!right.holds(b"jefe", body) && !right.holds(b"", body));
        assert!(!right.holds(KEY, b"want for nothing!") && !right.holds(KEY, b""));
        let shorter = &SHA256[..32];
        let longer = format!("{SHA256}00");
        for wrong in [&[][..], &[shorter], &[&longer], &[""], &["00"]] {
            assert!(!claim(Algorithm::Sha256, wrong).holds(KEY, body), "{wrong:?}");
        }
        assert!(!claim(Algorithm::Sha512, &[SHA256]).holds(KEY, body));
        let late = [vec!["00"; MOST_SIGNATURES], vec![SHA256]].concat();
        assert!(!claim(Algorithm::Sha256, &late).holds(KEY, body));
        assert!(!Claim::nothing().holds(KEY, body));
    }
}
