//! The signature scheme of the Standard Webhooks specification, version 1 (symmetric): HMAC-SHA256, in base64, over
//! `ID.TIMESTAMP.BODY`. No secret is ever shown, and signatures are compared in constant time.

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

/// How far the clocks of sender and receiver may be apart, in seconds.
pub const TOLERANCE_S: u64 = 300;

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

    /// Whether one of the signatures in the header was made with one of the keys; those of other versions are passed over. `id`
    /// and `timestamp` are the headers as they came. Whether the time is right is another question: [`is_fresh`].
    pub fn verify(&self, id: &str, timestamp: &str, body: &[u8], signatures: &str) -> bool {
        let given = signatures.split(' ').filter_map(|one| one.strip_prefix(SIGNATURE_PREFIX));
        let mut codes = given.filter_map(|text| BASE64.decode(text.as_bytes()).ok());
        codes.any(|code| {
            let made_with =
                |key: &Zeroizing<Vec<u8>>| hmac_sha256(key, &signed(id, timestamp, body)).verify_slice(&code).is_ok();
            self.0.iter().any(made_with)
        })
    }
}

/// Whether a timestamp header is a time within the tolerance around `now`, in seconds since 1970.
pub fn is_fresh(timestamp: &str, now: u64) -> bool {
    let digits = !timestamp.is_empty() && timestamp.bytes().all(|byte| byte.is_ascii_digit());
    digits && timestamp.parse::<u64>().is_ok_and(|time| time.abs_diff(now) <= TOLERANCE_S)
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

    #[test]
    fn a_signature_holds_for_its_id_its_time_its_body_and_its_key_alone() {
        let keys = Keys::parse(SECRET).unwrap();
        let signature = keys.sign(ID, "1614265330", BODY);
        assert!(keys.verify(ID, "1614265330", BODY, &signature));
        assert!(keys.verify(ID, "1614265330", BODY, &format!("v1a,AAAA v1, v1,AAAA {signature}")));
        assert!(!keys.verify("msg_other", "1614265330", BODY, &signature));
        assert!(!keys.verify(ID, "1614265331", BODY, &signature));
        assert!(!keys.verify(ID, "1614265330", b"{}", &signature));
        assert!(!Keys::parse(OTHER).unwrap().verify(ID, "1614265330", BODY, &signature));
        for wrong in ["", " ", "v1", "v1,", &signature[3..], &signature[..20], &signature.replace("v1", "v2")] {
            assert!(!keys.verify(ID, "1614265330", BODY, wrong), "{wrong}");
        }
    }

    #[test]
    fn while_a_secret_is_replaced_both_keys_sign_and_both_are_taken() {
        let (old, new) = (Keys::parse(SECRET).unwrap(), Keys::parse(OTHER).unwrap());
        let both = Keys::parse(&format!("{OTHER} {SECRET}")).unwrap();
        let signatures = both.sign(ID, "1", BODY);
        assert_eq!(signatures.split(' ').count(), 2);
        assert!(old.verify(ID, "1", BODY, &signatures) && new.verify(ID, "1", BODY, &signatures));
        assert!(both.verify(ID, "1", BODY, &old.sign(ID, "1", BODY)));
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

    #[test]
    fn a_timestamp_is_fresh_within_five_minutes() {
        for fresh in ["1000", "700", "1300"] {
            assert!(is_fresh(fresh, 1_000), "{fresh}");
        }
        for stale in ["699", "1301", "", "-1000", "+1000", "1000.0", " 1000", "99999999999999999999"] {
            assert!(!is_fresh(stale, 1_000), "{stale}");
        }
    }
}
