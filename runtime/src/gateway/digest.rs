//! The request digest: what makes two requests the same one.

use http::HeaderName;

use super::request::Checked;

/// BLAKE3 over method, URL, the headers that the provider's profile names, and the body, each length-prefixed. In the
/// place of a body that is streamed stands a mark, which no other request has: no header has an empty name.
pub fn request_digest(request: &Checked, headers: &[HeaderName]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("deedbox 2026 request digest");
    let mut field = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    field(request.method.as_str().as_bytes());
    field(request.url.as_str().as_bytes());
    for name in headers {
        for value in request.headers.get_all(name) {
            field(name.as_str().as_bytes());
            field(value.as_bytes());
        }
    }
    if request.upload.is_some() {
        field(b"");
        field(b"streamed body");
    }
    field(&request.body);
    *hasher.finalize().as_bytes()
}
