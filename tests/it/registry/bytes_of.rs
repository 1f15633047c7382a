//! Binary components that no text can be nested deeply enough for.

pub const WASM_HEADER: &[u8] = b"\0asm";

/// A component with nothing in it.
pub fn component_header() -> Vec<u8> {
    [WASM_HEADER, &[0x0d, 0, 1, 0]].concat()
}

/// A component with one section.
pub fn component_with(section: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = component_header();
    bytes.push(section);
    bytes.extend(leb128(content.len()));
    bytes.extend_from_slice(content);
    bytes
}

/// `$t0` is a list of bytes, every further type a list of the one before, and `$deep` the last of them.
pub fn list_types(depth: usize) -> String {
    let mut text = "(type $t0 (list u8))".to_owned();
    for level in 1..depth {
        text += &format!(" (type $t{level} (list $t{}))", level - 1);
    }
    text + &format!(" (type $deep (list $t{}))", depth - 1)
}

fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}
