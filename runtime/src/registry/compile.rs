//! What is checked of a component before and after it is compiled, with an error that says what to do about each way it can fail.

use wasmtime::component::Component;

use super::Error;
use super::artefact::Code;
use crate::host::{self, Engine, Module};

const WASM_MAGIC: &[u8] = b"\0asm";
const COMPONENT_LAYER: [u8; 4] = [0x0d, 0x00, 0x01, 0x00];
const CORE_LAYER: [u8; 4] = [0x01, 0x00, 0x00, 0x00];

/// Says early what is not a component at all. Compiled code of any kind is never accepted.
pub fn check_header(bytes: &[u8]) -> Result<(), Error> {
    let invalid = |why: &str| Err(Error::Invalid(why.to_owned()));
    match bytes.split_at_checked(4) {
        _ if bytes.is_empty() => invalid("the body is empty: send the bytes of a WebAssembly component"),
        Some((WASM_MAGIC, rest)) if rest.starts_with(&COMPONENT_LAYER) => Ok(()),
        Some((WASM_MAGIC, rest)) if rest.starts_with(&CORE_LAYER) => invalid(
            "this is a core WebAssembly module, not a component: build for wasm32-wasip2, or turn it into a component first",
        ),
        Some((WASM_MAGIC, _)) => invalid("this WebAssembly binary has a version that is not known here"),
        _ => invalid("this is not a WebAssembly component: it does not begin with the WebAssembly header"),
    }
}

/// Loads what was just compiled. What the component declares is compared with what the engine's places have.
pub fn load(engine: &Engine, code: &Code) -> Result<Component, Error> {
    code.component(engine)
        .map_err(|e| Error::Invalid(format!("the component is not valid on this host: {}", in_full(&e))))
}

/// The names of the imports; the error lists those that the host does not know.
pub fn imports(engine: &Engine, component: &Component) -> Result<Vec<String>, Error> {
    let names: Vec<String> =
        component.component_type().imports(engine.wasmtime()).map(|(name, _)| name.to_owned()).collect();
    let unknown: Vec<&str> = names.iter().map(String::as_str).filter(|name| !host::is_known(name)).collect();
    if unknown.is_empty() {
        return Ok(names);
    }
    Err(Error::Invalid(format!(
        "the component imports what the host does not offer: {}; it offers {}",
        unknown.join(", "),
        host::known_in_words()
    )))
}

/// Links the imports and finds the exports.
pub fn link(engine: &Engine, component: &Component) -> Result<Module, Error> {
    engine.link(component).map_err(|e| {
        Error::Invalid(format!("the component does not fit the world deedbox:activity/activity@0.1.0: {}", in_full(&e)))
    })
}

/// All causes of an error.
pub fn in_full(error: &wasmtime::Error) -> String {
    in_decimals(&error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": "))
}

/// The engine writes some sizes in decimals and some in hexadecimals, even in one sentence.
fn in_decimals(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        match u64::from_str_radix(&part[..digits], 16) {
            Ok(number) => whole.push_str(&format!("{number}{}", &part[digits..])),
            Err(_) => whole.push_str(&format!("0x{part}")),
        }
    }
    whole
}

/// Compiles in this process, for the laws of readers: a component of an upload is compiled in a process of its own.
#[cfg(any(test, fuzzing))]
pub fn here(engine: &Engine, bytes: &[u8]) -> Option<Component> {
    let code = engine.wasmtime().precompile_component(bytes).ok()?;
    load(engine, &Code::of_compiler(code)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_decimals() {
        assert_eq!(in_decimals("size of 17 exceeds 0x10 bytes, at 0x"), "size of 17 exceeds 16 bytes, at 0x");
        assert_eq!(in_decimals("0xfffffffffffffffff"), "0xfffffffffffffffff");
    }
}
