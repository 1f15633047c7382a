//! Name=value pairs with `&` between them: the query of a URL, and a form-encoded body.
//!
//! Pairs are compared by their decoded names and are never encoded anew, so that all others stay as they were written.

use std::borrow::Cow;

use url::form_urlencoded::{byte_serialize, parse};

/// The value of the first pair of this name.
pub fn read(text: &[u8], name: &str) -> Option<String> {
    let pair = pieces(text).find(|piece| is_named(piece, name))?;
    parse(pair).next().map(|(_, value)| value.into_owned())
}

/// With one pair of this name: in the place of the first, else at the end.
pub fn set(text: &[u8], name: &str, value: &str) -> Vec<u8> {
    let pair: String = byte_serialize(name.as_bytes()).chain(["="]).chain(byte_serialize(value.as_bytes())).collect();
    let mut unused = Some(Cow::Owned(pair.into_bytes()));
    let mut kept: Vec<Cow<'_, [u8]>> = Vec::new();
    for piece in pieces(text) {
        if is_named(piece, name) {
            kept.extend(unused.take());
        } else {
            kept.push(piece.into());
        }
    }
    kept.extend(unused);
    kept.join(&b'&')
}

/// Without any pair of this name.
pub fn unset(text: &[u8], name: &str) -> Vec<u8> {
    let kept: Vec<&[u8]> = pieces(text).filter(|piece| !is_named(piece, name)).collect();
    kept.join(&b'&')
}

fn pieces(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    // An empty text has no pair, where splitting would find an empty one.
    text.split(|byte| *byte == b'&').filter(move |_| !text.is_empty())
}

fn is_named(piece: &[u8], name: &str) -> bool {
    parse(piece).next().is_some_and(|(own, _)| own == name)
}
