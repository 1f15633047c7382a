// Text to UTF-8 and back, on every engine. Bytes that are no UTF-8 are an error unless the caller asks for replacement
// characters.

import * as portable from "./utf8_portable.js";

// Asked for once, before this package puts its own in the place of one that is missing.
const { TextEncoder: Encoder, TextDecoder: Decoder } = globalThis;

/** The bytes of a text. */
export function encode(text) {
  return Encoder === undefined ? portable.encode(text) : new Encoder().encode(text);
}

/** The text of these bytes. Throws a TypeError at a byte that does not belong, or puts U+FFFD there when `lossy`. */
export function decode(bytes, lossy = false) {
  if (Decoder === undefined) return portable.decode(bytes, lossy);
  return new Decoder("utf-8", { fatal: !lossy, ignoreBOM: true }).decode(bytes);
}
