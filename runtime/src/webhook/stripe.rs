//! Stripe: `Stripe-Signature: t=SECONDS,v1=HEX[,v1=HEX]`, an HMAC-SHA256 over `SECONDS.BODY` with the endpoint's secret as it is
//! shown, `whsec_` included. While a secret is being rolled there are several signatures.

use data_encoding::HEXLOWER_PERMISSIVE;

use super::{Algorithm, Claim};

pub const SIGNATURE: &str = "stripe-signature";

/// When the delivery says that it was signed, in seconds since 1970, and what it claims; none when it is not of this form.
pub fn read(signature: &str) -> Option<(i64, Claim)> {
    let (mut time, mut signatures) = (None, Vec::new());
    for part in signature.split(',') {
        let Some((name, value)) = part.split_once('=') else { continue };
        match name.trim() {
            "t" if time.is_some() => return None,
            "t" => time = Some(value.trim()),
            // Other versions are for other purposes: a test key's `v0` proves nothing.
            "v1" => signatures.extend(HEXLOWER_PERMISSIVE.decode(value.trim().as_bytes())),
            _ => {}
        }
    }
    let time = time.filter(|text| text.bytes().all(|c| c.is_ascii_digit()))?;
    let claim = Claim { algorithm: Algorithm::Sha256, before: format!("{time}.").into_bytes(), signatures };
    Some((time.parse().ok()?, claim)).filter(|(_, claim)| !claim.signatures.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed outside this code.
    const SECRET: &[u8] = b"whsec_deedbox_test";
    const BODY: &[u8] = br#"{"id":"evt_1","object":"event"}"#;
    const SIGNED: &str = "3b16cd7eec52e0f4e3f6f52ace6aabfc3ed644dd6c530b5c439aa57bfe75ddae";

    fn holds(header: &str) -> bool {
        read(header).is_some_and(|(time, claim)| time == 1_700_000_000 && claim.holds(SECRET, BODY))
    }

    #[test]
    fn one_signature_of_the_first_version_must_be_right() {
        let other = "0".repeat(64);
        assert!(holds(&format!("t=1700000000,v1={SIGNED}")));
        assert!(holds(&format!("t=1700000000,v1={other},v1={SIGNED},v0={other}")));
        assert!(holds(&format!("v1=x, v1={SIGNED}, t=1700000000, whatever")));
        assert!(!holds(&format!("t=1700000000,v1={other}")));
        assert!(!holds(&format!("t=1700000000,v1={other},v0={SIGNED}")));
    }

    #[test]
    fn the_time_is_part_of_what_is_signed() {
        let (time, claim) = read(&format!("t=1700000001,v1={SIGNED}")).unwrap();
        assert!(time == 1_700_000_001 && !claim.holds(SECRET, BODY));
        assert!(!read(&format!("t=01700000000,v1={SIGNED}")).unwrap().1.holds(SECRET, BODY));
    }

    #[test]
    fn another_form_is_no_signature() {
        let v1 = format!("v1={SIGNED}");
        let none = [
            String::new(),
            v1.clone(),
            "t=1700000000".to_owned(),
            format!("t=,{v1}"),
            format!("t=-1,{v1}"),
            format!("t=1700000000,t=1700000000,{v1}"),
            format!("t=99999999999999999999,{v1}"),
            format!("t=1700000000,v2={SIGNED}"),
        ];
        for wrong in none {
            assert!(read(&wrong).is_none(), "{wrong}");
        }
    }
}
