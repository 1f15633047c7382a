//! Binary components that no text can be nested deeply enough for.

pub const WASM_HEADER: &[u8] = b"\0asm";

/// A component with nothing in it.
pub fn component_header() -> Vec<u8> {
    [WASM_HEADER, &[0x0d, 0, 1, 0]].concat()
}

/// A component with one section.
pub fn component_with(id: u8, content: &[u8]) -> Vec<u8> {
    [component_header(), section(id, content)].concat()
}

/// A section of a component or a module.
pub fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id][..], &leb128(content.len()), content].concat()
}

/// The section of a component that holds a core module.
pub const MODULE: u8 = 1;

/// A core module of functions that take a number and give one, all with the same body, and of data that nobody uses.
pub fn module(functions: usize, body: &[u8], data: usize) -> Vec<u8> {
    let count = leb128(functions);
    let bodies = [leb128(body.len()), body.to_vec()].concat().repeat(functions);
    let of_type_0 = vec![0; functions];
    let passive = [leb128(1), vec![1], leb128(data), vec![7; data]].concat();
    let sections = [
        section(1, &[1, 0x60, 1, 0x7f, 1, 0x7f]),
        section(3, &[count.clone(), of_type_0].concat()),
        section(10, &[count, bodies].concat()),
        section(11, &passive),
    ];
    [WASM_HEADER, &[1, 0, 0, 0], &sections.concat()].concat()
}

/// A function's body: computes, in about so many bytes of code.
pub fn computing(bytes: usize) -> Vec<u8> {
    // x, then again and again: times 7, xor x.
    let step = [0x41, 7, 0x6c, 0x20, 0, 0x73];
    [&[0, 0x20, 0][..], &step.repeat(bytes / step.len()), &[END]].concat()
}

/// A function's body: blocks in blocks.
pub fn nesting(depth: usize) -> Vec<u8> {
    [&[0][..], &[0x02, 0x40].repeat(depth), &[END].repeat(depth), &[0x20, 0, END]].concat()
}

/// A function's body: jumps to one of so many places, which are all the same.
pub fn jumping(places: usize) -> Vec<u8> {
    [&[0, 0x02, 0x40, 0x20, 0, 0x0e][..], &leb128(places), &vec![0; places + 1], &[END, 0x20, 0, END]].concat()
}

/// A function's body: declares so many local numbers, and uses none.
pub fn locals(count: usize) -> Vec<u8> {
    [&[1][..], &leb128(count), &[0x7f, 0x20, 0, END]].concat()
}

const END: u8 = 0x0b;

/// `$t0` is a list of bytes, every further type a list of the one before, and `$deep` the last of them.
pub fn list_types(depth: usize) -> String {
    let mut text = "(type $t0 (list u8))".to_owned();
    for level in 1..depth {
        text += &format!(" (type $t{level} (list $t{}))", level - 1);
    }
    text + &format!(" (type $deep (list $t{}))", depth - 1)
}

pub fn leb128(mut number: usize) -> Vec<u8> {
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
