//! How an input is taken apart: texts, headers, and pieces between lines of `%%`. Every byte string means something, so that
//! no input is lost, and stored inputs can be read and written by people.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

const BORDER: &[u8] = b"\n%%\n";

/// The pieces of an input. Those that are missing are empty; the last one is all the rest.
pub fn pieces<const N: usize>(input: &[u8]) -> [&[u8]; N] {
    let mut rest = input;
    std::array::from_fn(|at| {
        let border = rest.windows(BORDER.len()).position(|window| window == BORDER).filter(|_| at + 1 < N);
        let (piece, behind) = border.map_or((rest, &[][..]), |at| (&rest[..at], &rest[at + BORDER.len()..]));
        rest = behind;
        piece
    })
}

/// The bytes as far as they are text.
pub fn text(bytes: &[u8]) -> &str {
    let end = std::str::from_utf8(bytes).map_or_else(|e| e.valid_up_to(), str::len);
    std::str::from_utf8(&bytes[..end]).unwrap_or_default()
}

/// Lines of `name: value`; whatever can be no header is left out.
pub fn headers(bytes: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs(bytes) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    headers
}

/// Lines of `name: value`, whatever they hold.
pub fn pairs(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    // Whoever takes them has limits of its own.
    bytes.split(|byte| *byte == b'\n').take(200).filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// The strings of a JSON value that are long enough to be known again, names of members left out.
pub fn long_strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) if text.len() >= 8 => vec![text],
        Value::Array(items) => items.iter().flat_map(long_strings).collect(),
        Value::Object(members) => members.values().flat_map(long_strings).collect(),
        _ => Vec::new(),
    }
}

/// Whether a name is 1 to `most` bytes of letters, digits and these.
pub fn is_name(name: &str, most: usize, others: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    (1..=most).contains(&name.len()) && name.chars().all(known)
}
