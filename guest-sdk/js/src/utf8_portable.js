// Text to UTF-8 and back where the engine has neither TextEncoder nor TextDecoder.
//
// An interpreter takes a microsecond for each step of a loop, so the work is left to functions that every engine has built
// in; the loops here are for bytes that are no UTF-8.

const CHUNK = 8192;

/** The bytes of a text. Half a surrogate pair becomes U+FFFD, as TextEncoder has it. */
export function encode(text) {
  // One character for each byte.
  const binary = unescape(encodeURIComponent(text.toWellFormed()));
  if (typeof Uint8Array.fromBase64 === "function") return Uint8Array.fromBase64(btoa(binary));
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** The text of these bytes. Throws a TypeError at a byte that does not belong, or puts U+FFFD there when `lossy`. */
export function decode(bytes, lossy = false) {
  const parts = [];
  for (let i = 0; i < bytes.length; i += CHUNK) {
    parts.push(String.fromCharCode.apply(null, bytes.subarray(i, i + CHUNK)));
  }
  try {
    return decodeURIComponent(escape(parts.join("")));
  } catch {
    return decodeCarefully(bytes, lossy);
  }
}

function decodeCarefully(bytes, lossy) {
  const parts = [];
  let units = [];
  for (let i = 0; i < bytes.length; ) {
    const found = bytes[i] < 0x80 ? { size: 1, code: bytes[i] } : sequence(bytes, i);
    if (found.code === undefined && !lossy) throw new TypeError(`not UTF-8 at byte ${i}`);
    push(units, found.code ?? 0xfffd);
    i += found.size;
    if (units.length >= CHUNK) {
      parts.push(String.fromCharCode(...units));
      units = [];
    }
  }
  parts.push(String.fromCharCode(...units));
  return parts.join("");
}

function push(units, code) {
  if (code < 0x10000) units.push(code);
  else units.push(0xd800 + ((code - 0x10000) >> 10), 0xdc00 + ((code - 0x10000) & 0x3ff));
}

/** The character that begins here and its size, or no character and the size of what is broken. */
function sequence(bytes, at) {
  const first = bytes[at];
  const more =
    first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2 : first >= 0xf0 && first < 0xf5 ? 3 : 0;
  if (more === 0) return { size: 1 };
  let code = first & (0x3f >> more);
  for (let i = 1; i <= more; i += 1) {
    const byte = bytes[at + i];
    const [low, high] = i === 1 ? secondByte(first) : [0x80, 0xbf];
    if (byte === undefined || byte < low || byte > high) return { size: i };
    code = (code << 6) | (byte & 0x3f);
  }
  return { size: more + 1, code };
}

/** The range that leaves out overlong forms, surrogates, and what is above U+10FFFF. */
function secondByte(first) {
  switch (first) {
    case 0xe0:
      return [0xa0, 0xbf];
    case 0xed:
      return [0x80, 0x9f];
    case 0xf0:
      return [0x90, 0xbf];
    case 0xf4:
      return [0x80, 0x8f];
    default:
      return [0x80, 0xbf];
  }
}
