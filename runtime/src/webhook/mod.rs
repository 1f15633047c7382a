//! Signatures of webhooks, ours and those of others. Pure: no I/O, no clock; whoever calls brings the secret and the time.

pub mod standard;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// HMAC-SHA256 over the parts, one after another; ready to be finished, or compared in constant time with `verify_slice`.
pub fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    #[allow(clippy::expect_used, reason = "RFC 2104 takes keys of any length, and so does the library")]
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac
}
