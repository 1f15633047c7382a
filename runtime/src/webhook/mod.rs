//! Signed messages between servers: how ours are signed, and how those of others are checked. Bytes, keys and the time come in;
//! nothing here may read a clock, keep a secret, or say one in an error.

mod claim;
pub mod github;
pub mod scheme;
pub mod shared_secret;
pub mod standard;
pub mod standard_claim;
pub mod stripe;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

pub use claim::{Algorithm, Claim};

/// HMAC-SHA256 over the parts, one after another; ready to be finished, or compared in constant time with `verify_slice`.
pub fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    #[allow(clippy::expect_used, reason = "RFC 2104 takes keys of any length, and so does the library")]
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac
}
