//! The signature scheme of the Standard Webhooks specification, version 1 (symmetric): HMAC-SHA256, in base64, over
//! `ID.TIMESTAMP.BODY`, as it is made. No secret is ever shown. `standard_claim.rs` reads it.

use std::fmt;

use data_encoding::BASE64;
use hmac::Mac;
use zeroize::Zeroizing;

use super::hmac_sha256;

pub const ID: &str = "webhook-id";
/// Seconds since 1970.
pub const TIMESTAMP: &str = "webhook-timestamp";
/// One or more signatures, with spaces between.
pub const SIGNATURE: &str = "webhook-signature";

const SECRET_PREFIX: &str = "whsec_";
const SIGNATURE_PREFIX: &str = "v1,";

/// What the specification asks of a key, in bytes.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Keys in use at once: while a secret is replaced, the old and the new.
const MAX_KEYS: usize = 4;

/// What a secret must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be `whsec_` and the base64 of 24 to 64 random bytes, for example `whsec_$(openssl rand -base64 32)`; or a few of these with spaces between"
)]
pub struct InvalidSecret;

/// The keys of one secret.
pub struct Keys(Vec<Zeroizing<Vec<u8>>>);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

impl Keys {
    /// Reads a secret: one `whsec_…`, or a few with single spaces between.
    pub fn parse(secret: &str) -> Result<Self, InvalidSecret> {
        let keys: Vec<_> = secret.split(' ').map(key).collect::<Result<_, _>>()?;
        if keys.len() > MAX_KEYS { Err(InvalidSecret) } else { Ok(Self(keys)) }
    }

    /// The value of the signature header: one signature for each key.
    pub fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let signature = |key: &Zeroizing<Vec<u8>>| {
            let code = hmac_sha256(key, &signed(id, timestamp, body)).finalize().into_bytes();
            format!("{SIGNATURE_PREFIX}{}", BASE64.encode(code.as_slice()))
        };
        self.0.iter().map(signature).collect::<Vec<_>>().join(" ")
    }
}

fn key(text: &str) -> Result<Zeroizing<Vec<u8>>, InvalidSecret> {
    let encoded = text.strip_prefix(SECRET_PREFIX).ok_or(InvalidSecret)?;
    let bytes = Zeroizing::new(BASE64.decode(encoded.as_bytes()).map_err(|_| InvalidSecret)?);
    if KEY_BYTES.contains(&bytes.len()) { Ok(bytes) } else { Err(InvalidSecret) }
}

fn signed<'a>(id: &'a str, timestamp: &'a str, body: &'a [u8]) -> [&'a [u8]; 5] {
    [id.as_bytes(), b".", timestamp.as_bytes(), b".", body]
}

#[cfg(test)]
mod tests {
    use super::super::standard_claim;
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const OTHER: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;

    /// The example that the scheme's libraries are tested with; checked with Python's `hmac`.
    #[test]
    fn the_published_example_is_signed_as_published() {
        let signature = Keys::parse(SECRET).unwrap().sign(ID, "1614265330", BODY);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    /// Read as the webhooks of others are.
    fn holds(secret: &str, signatures: &str) -> bool {
        let key = standard_claim::key(secret).unwrap();
        standard_claim::read(ID, "1", signatures).is_some_and(|(_, claim)| claim.holds(&key, BODY))
    }

    #[test]
    fn while_a_secret_is_replaced_both_keys_sign() {
        let signatures = Keys::parse(&format!("{OTHER} {SECRET}")).unwrap().sign(ID, "1", BODY);
        assert_eq!(signatures.split(' ').count(), 2);
        assert!(holds(SECRET, &signatures) && holds(OTHER, &signatures));
        let old = Keys::parse(SECRET).unwrap().sign(ID, "1", BODY);
        assert!(holds(SECRET, &old) && !holds(OTHER, &old));
    }

    #[test]
    fn a_secret_has_its_prefix_and_enough_bytes() {
        let of = |bytes: usize| format!("whsec_{}", BASE64.encode(&vec![7; bytes]));
        for bytes in [24, 32, 64] {
            assert!(Keys::parse(&of(bytes)).is_ok(), "{bytes}");
        }
        let unprefixed = of(32).replace("whsec_", "");
        let five = [of(32), of(32), of(32), of(32), of(32)].join(" ");
        for wrong in ["", "whsec_", "whsec_!", &of(23), &of(65), &unprefixed, &format!("{} ", of(32)), &five] {
            assert_eq!(Keys::parse(wrong).unwrap_err(), InvalidSecret, "{wrong}");
        }
        assert_eq!(format!("{:?}", Keys::parse(SECRET).unwrap()), "Keys");
    }
}
