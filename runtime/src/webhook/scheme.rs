//! The schemes by which senders prove themselves, and the one decision: whether a delivery was signed with one of its hook's
//! secrets, and lately. A refusal takes the same work whatever it is for, so that its time does not tell whether there is a hook.

use std::hint::black_box;

use http::HeaderMap;
use zeroize::Zeroizing;

use super::shared_secret::Form;
use super::{Claim, github, standard_claim, stripe};

/// A hook has one secret, or two while the sender changes from one to the other.
pub const MOST_SECRETS: usize = 2;

/// Seconds between the signing and now, in either direction, where the hook says nothing.
pub const TOLERANCE_S: u32 = 300;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    Stripe { tolerance_s: u32 },
    Github,
    StandardWebhooks { tolerance_s: u32 },
    Hmac(Form),
}

/// What arrived, before anything of the body was parsed.
#[derive(Clone, Copy)]
pub struct Signed<'a> {
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
    /// Seconds since 1970.
    pub now: i64,
}

/// Whether one of the secrets has signed the delivery. No scheme stands for no hook.
pub fn is_signed(scheme: Option<&Scheme>, secrets: &[&str], signed: &Signed<'_>) -> bool {
    let mut tried = 0;
    if let Some(scheme) = scheme
        && let Some(claim) = scheme.read(signed)
    {
        for key in secrets.iter().take(MOST_SECRETS).filter_map(|secret| scheme.key(secret)) {
            if claim.holds(&key, signed.body) {
                return true;
            }
            tried += 1;
        }
    }
    for _ in tried..MOST_SECRETS {
        black_box(Claim::nothing().holds(black_box(b"nobody's"), signed.body));
    }
    false
}

/// The value of a header that is there just once, if it is visible ASCII.
pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    let (Some(one), None) = (all.next(), all.next()) else { return None };
    one.to_str().ok()
}

impl Scheme {
    /// What a secret's signatures are made with; none when it cannot be a secret of this scheme.
    pub fn key(&self, secret: &str) -> Option<Zeroizing<Vec<u8>>> {
        match self {
            Self::StandardWebhooks { .. } => standard_claim::key(secret),
            _ => Some(Zeroizing::new(secret.as_bytes().to_vec())),
        }
    }

    /// What the headers claim; none when they are not of this scheme, or not of now.
    fn read(&self, signed: &Signed<'_>) -> Option<Claim> {
        let header = |name| header(signed.headers, name);
        let timed = |(time, claim): (i64, Claim), tolerance_s| is_near(time, signed.now, tolerance_s).then_some(claim);
        match self {
            Self::Stripe { tolerance_s } => timed(stripe::read(header(stripe::SIGNATURE)?)?, *tolerance_s),
            Self::Github => github::read(header(github::SIGNATURE)?),
            Self::StandardWebhooks { tolerance_s } => {
                let (id, timestamp) = (header(standard_claim::ID)?, header(standard_claim::TIMESTAMP)?);
                timed(standard_claim::read(id, timestamp, header(standard_claim::SIGNATURE)?)?, *tolerance_s)
            }
            Self::Hmac(form) => form.read(header(form.header.as_str())?),
        }
    }
}

fn is_near(time: i64, now: i64, tolerance_s: u32) -> bool {
    time.abs_diff(now) <= u64::from(tolerance_s)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    const SECRET: &str = "It's a Secret to Everybody";
    const BODY: &[u8] = b"Hello, World!";
    const SIGNATURE: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn github(secrets: &[&str], pairs: &[(&'static str, &str)]) -> bool {
        let headers = headers(pairs);
        is_signed(Some(&Scheme::Github), secrets, &Signed { headers: &headers, body: BODY, now: 0 })
    }

    #[test]
    fn either_secret_may_have_signed() {
        let signed = [(github::SIGNATURE, SIGNATURE)];
        assert!(github(&[SECRET], &signed));
        assert!(github(&["other", SECRET], &signed) && github(&[SECRET, "other"], &signed));
        assert!(!github(&["other", "another"], &signed) && !github(&[], &signed));
        assert!(!github(&["other", "another", SECRET], &signed), "a hook has two secrets at most");
    }

    #[test]
    fn the_signature_s_header_is_there_just_once() {
        assert!(!github(&[SECRET], &[]));
        assert!(!github(&[SECRET], &[(github::SIGNATURE, SIGNATURE), (github::SIGNATURE, SIGNATURE)]));
        assert!(!github(&[SECRET], &[("x-hub-signature", SIGNATURE)]));
    }

    #[test]
    fn without_a_hook_nothing_is_signed() {
        let headers = headers(&[(github::SIGNATURE, SIGNATURE)]);
        assert!(!is_signed(None, &[SECRET], &Signed { headers: &headers, body: BODY, now: 0 }));
        assert!(!is_signed(None, &["nobody's"], &Signed { headers: &headers, body: BODY, now: 0 }));
    }

    #[test]
    fn a_time_may_be_off_by_the_tolerance_and_no_more() {
        let signed = "t=1700000000,v1=3b16cd7eec52e0f4e3f6f52ace6aabfc3ed644dd6c530b5c439aa57bfe75ddae";
        let headers = headers(&[(stripe::SIGNATURE, signed)]);
        let body = br#"{"id":"evt_1","object":"event"}"#;
        let scheme = Scheme::Stripe { tolerance_s: 300 };
        let at = |now| is_signed(Some(&scheme), &["whsec_deedbox_test"], &Signed { headers: &headers, body, now });
        assert!(at(1_700_000_000) && at(1_700_000_300) && at(1_699_999_700));
        assert!(!at(1_700_000_301) && !at(1_699_999_699) && !at(0) && !at(i64::MIN) && !at(i64::MAX));
    }
}
