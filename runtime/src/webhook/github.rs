//! GitHub: `X-Hub-Signature-256: sha256=HEX`, an HMAC-SHA256 over the body. Neither a time nor the delivery's id is signed.

use data_encoding::HEXLOWER_PERMISSIVE;

use super::{Algorithm, Claim};

pub const SIGNATURE: &str = "x-hub-signature-256";
pub const DELIVERY_ID: &str = "x-github-delivery";

/// What the signature's header claims; none when it is not of this form.
pub fn read(signature: &str) -> Option<Claim> {
    let hex = signature.strip_prefix("sha256=")?;
    let signature = HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok()?;
    Some(Claim { algorithm: Algorithm::Sha256, before: Vec::new(), signatures: vec![signature] })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one that GitHub's documentation gives.
    const SECRET: &[u8] = b"It's a Secret to Everybody";
    const SIGNED: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    #[test]
    fn the_documented_signature_holds() {
        assert!(read(SIGNED).unwrap().holds(SECRET, b"Hello, World!"));
        assert!(!read(SIGNED).unwrap().holds(SECRET, b"Hello, World."));
        assert!(!read(SIGNED).unwrap().holds(b"Its a Secret to Everybody", b"Hello, World!"));
    }

    #[test]
    fn another_form_is_no_signature() {
        let bare = &SIGNED[7..];
        for wrong in ["", bare, &format!("sha1={bare}"), &format!("{SIGNED}0"), "sha256=xx", "sha256= 00"] {
            assert!(read(wrong).is_none(), "{wrong}");
        }
    }
}
