//! Senders without a scheme of a known name: an HMAC over the body, in a header that the tenant describes.

use data_encoding::{BASE64, BASE64_NOPAD, HEXLOWER_PERMISSIVE};
use http::HeaderName;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Algorithm, Claim};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    Hex,
    /// With its padding or without it.
    Base64,
}

/// How the signature is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    pub header: HeaderName,
    /// Stands before the signature.
    pub prefix: String,
    pub encoding: Encoding,
    pub algorithm: Algorithm,
}

impl Form {
    /// What the signature's header claims; none when it is not of this form.
    pub fn read(&self, signature: &str) -> Option<Claim> {
        let text = signature.strip_prefix(&self.prefix)?.as_bytes();
        let decoded = match self.encoding {
            Encoding::Hex => HEXLOWER_PERMISSIVE.decode(text),
            Encoding::Base64 => BASE64.decode(text).or_else(|_| BASE64_NOPAD.decode(text)),
        };
        Some(Claim { algorithm: self.algorithm, before: Vec::new(), signatures: vec![decoded.ok()?] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test case 2 of RFC 4231.
    const KEY: &[u8] = b"Jefe";
    const BODY: &[u8] = b"what do ya want for nothing?";
    const SHA256: &str = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";

    fn form(prefix: &str, encoding: Encoding) -> Form {
        let header = HeaderName::from_static("x-signature");
        Form { header, prefix: prefix.to_owned(), encoding, algorithm: Algorithm::Sha256 }
    }

    fn holds(form: &Form, signature: &str) -> bool {
        form.read(signature).is_some_and(|claim| claim.holds(KEY, BODY))
    }

    #[test]
    fn a_signature_is_read_as_it_is_described() {
        let hex = form("", Encoding::Hex);
        assert!(holds(&hex, SHA256) && holds(&hex, &SHA256.to_uppercase()));
        assert!(holds(&form("v0=", Encoding::Hex), &format!("v0={SHA256}")));
        let base64 = BASE64.encode(&HEXLOWER_PERMISSIVE.decode(SHA256.as_bytes()).unwrap());
        assert!(base64.ends_with('='));
        let padded = form("", Encoding::Base64);
        assert!(holds(&padded, &base64) && holds(&padded, base64.trim_end_matches('=')));
    }

    #[test]
    fn another_form_is_no_signature() {
        assert!(form("v0=", Encoding::Hex).read(SHA256).is_none());
        assert!(form("", Encoding::Hex).read(&format!("v0={SHA256}")).is_none());
        assert!(form("", Encoding::Hex).read(&SHA256[1..]).is_none());
        assert!(form("", Encoding::Base64).read("a-b_").is_none());
        assert!(!holds(&form("", Encoding::Hex), ""));
    }
}
