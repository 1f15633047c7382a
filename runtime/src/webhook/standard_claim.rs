//! The Standard Webhooks specification as it is read: `webhook-signature: v1,BASE64 [v1,BASE64]`, an HMAC-SHA256 over
//! `ID.TIMESTAMP.BODY`. The key is the Base64 behind the `whsec_` of the secret.

use data_encoding::{BASE64, BASE64_NOPAD};
use zeroize::Zeroizing;

pub use super::standard::{ID, SIGNATURE, TIMESTAMP};
use super::{Algorithm, Claim};

/// When the delivery says that it was signed, in seconds since 1970, and what it claims; none when it is not of this form.
pub fn read(id: &str, timestamp: &str, signatures: &str) -> Option<(i64, Claim)> {
    let time = Some(timestamp).filter(|text| text.bytes().all(|c| c.is_ascii_digit()))?.parse().ok()?;
    // Other versions have other keys.
    let given = signatures.split(' ').filter_map(|one| one.strip_prefix("v1,"));
    let signatures: Vec<_> = given.filter_map(|text| BASE64.decode(text.as_bytes()).ok()).collect();
    let before = format!("{id}.{timestamp}.").into_bytes();
    (!signatures.is_empty()).then_some((time, Claim { algorithm: Algorithm::Sha256, before, signatures }))
}

/// The key that a secret stands for.
pub fn key(secret: &str) -> Option<Zeroizing<Vec<u8>>> {
    let text = secret.strip_prefix("whsec_").unwrap_or(secret).as_bytes();
    let key = BASE64.decode(text).or_else(|_| BASE64_NOPAD.decode(text)).ok()?;
    Some(Zeroizing::new(key)).filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example with which the specification's libraries are tested.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const MESSAGE: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const TIME: &str = "1614265330";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNED: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn holds(id: &str, timestamp: &str, signatures: &str, body: &[u8]) -> bool {
        let key = key(SECRET).unwrap();
        read(id, timestamp, signatures).is_some_and(|(_, claim)| claim.holds(&key, body))
    }

    #[test]
    fn the_published_signature_holds_for_its_message_alone() {
        assert!(holds(MESSAGE, TIME, SIGNED, BODY));
        assert!(holds(MESSAGE, TIME, &format!("v1a,xx v1,AAAA v1,! {SIGNED}"), BODY));
        assert_eq!(read(MESSAGE, TIME, SIGNED).unwrap().0, 1_614_265_330);
        assert!(!holds("msg_other", TIME, SIGNED, BODY) && !holds(MESSAGE, "1614265331", SIGNED, BODY));
        assert!(!holds(MESSAGE, TIME, SIGNED, b"{}") && !holds(MESSAGE, TIME, "v1,AAAA", BODY));
    }

    #[test]
    fn another_form_is_no_signature() {
        for signatures in ["", "v1", "v1,", "v1,!", &SIGNED[3..], &SIGNED.replace("v1", "v2")] {
            assert!(!holds(MESSAGE, TIME, signatures, BODY), "{signatures}");
        }
        for timestamp in ["", "x", "-1", "+1614265330", "1614265330.0", "99999999999999999999"] {
            assert!(read(MESSAGE, timestamp, SIGNED).is_none(), "{timestamp}");
        }
    }

    #[test]
    fn a_secret_is_base_64_behind_its_prefix_or_without_it() {
        assert_eq!(key(SECRET), key(&SECRET[6..]));
        assert_eq!(key("whsec_AA=="), key("whsec_AA"));
        for wrong in ["", "whsec_", "whsec_!", "whsec_A"] {
            assert!(key(wrong).is_none(), "{wrong}");
        }
    }
}
