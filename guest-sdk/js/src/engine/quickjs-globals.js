// What QuickJS lacks and code that is not written for it takes for granted. It comes before the author's module.
//
// Random numbers come from the host, which gives a run the same ones in every attempt: the engine's own begin with the
// same number in every instance. Nothing here is asked before the first call, for there is no host while it is built.

import stderr from "wasi:cli/stderr@0.2.12";
import stdout from "wasi:cli/stdout@0.2.12";
import random from "wasi:random/random@0.2.12";

import { decode, encode } from "../utf8.js";
import { words } from "../words.js";

// What one blocking write of wasi:io takes.
const MOST_BYTES = 4096;
const QUOTA = 65536;

function printing(open) {
  return (...values) => {
    const bytes = encode(`${values.map(words).join(" ")}\n`);
    const stream = open();
    for (let at = 0; at < bytes.length; at += MOST_BYTES) {
      stream.blockingWriteAndFlush(bytes.subarray(at, at + MOST_BYTES));
    }
  };
}

const print = printing(() => stdout.getStdout());
const complain = printing(() => stderr.getStderr());

class Utf8Encoder {
  encoding = "utf-8";

  encode(text = "") {
    return encode(String(text));
  }
}

class Utf8Decoder {
  encoding = "utf-8";

  constructor(label = "utf-8", { fatal = false } = {}) {
    if (!["utf-8", "utf8"].includes(label.toLowerCase())) throw new RangeError(`${label}: only utf-8 is known here`);
    this.fatal = fatal;
  }

  decode(source = new Uint8Array(0)) {
    const bytes = ArrayBuffer.isView(source)
      ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
      : new Uint8Array(source);
    const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    return decode(marked ? bytes.subarray(3) : bytes, !this.fatal);
  }
}

function randomUUID() {
  const bytes = random.getRandomBytes(16);
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/u, "$1-$2-$3-$4-");
}

function getRandomValues(array) {
  if (array.byteLength > QUOTA) throw new RangeError(`getRandomValues gives at most ${QUOTA} bytes`);
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(random.getRandomBytes(array.byteLength));
  return array;
}

/** 53 bits, as many as a number between 0 and 1 holds. */
Math.random = () => {
  const bytes = random.getRandomBytes(7);
  return bytes.reduce((sum, byte, i) => sum + (i === 6 ? byte & 0x1f : byte) * 2 ** (8 * i), 0) / 2 ** 53;
};

const LACKING = {
  console: { debug: print, info: print, log: print, trace: complain, warn: complain, error: complain },
  crypto: { getRandomValues, randomUUID },
  TextEncoder: Utf8Encoder,
  TextDecoder: Utf8Decoder,
};

for (const [name, value] of Object.entries(LACKING)) {
  if (globalThis[name] === undefined) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  }
}
