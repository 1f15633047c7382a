// Text to bytes and back is held to what Node.js does.

import assert from "node:assert/strict";
import { test } from "node:test";

import { decode, encode } from "../src/utf8_portable.js";
import { words } from "../src/words.js";

const TEXTS = [
  "",
  "a",
  "é",
  "付款",
  "💶",
  "\u0000\u007f\u0080\u07ff\u0800\uffff",
  "\ud800x",
  "x\udc00",
  "\udc00\ud800",
  "a".repeat(20_000) + "💶",
];

test("bytes of a text are those of TextEncoder", () => {
  for (const text of TEXTS) assert.deepEqual(encode(text), new TextEncoder().encode(text));
});

test("a text of bytes is that of TextDecoder, for every two bytes and for what is cut", () => {
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const lossy = new TextDecoder("utf-8", { ignoreBOM: true });
  const tails = [[], [0x80], [0x80, 0x80], [0xbf, 0xbf], [0xbf, 0xbf, 0xbf], [0x41]];
  for (let first = 0; first < 256; first += 1) {
    for (let second = 0; second < 256; second += 7) {
      for (const tail of tails) {
        const bytes = Uint8Array.of(first, second, ...tail);
        assert.equal(decode(bytes, true), lossy.decode(bytes), `${bytes}`);
        assert.equal(
          outcome(() => decode(bytes)),
          outcome(() => strict.decode(bytes)),
          `${bytes}`,
        );
      }
    }
  }
  for (const text of TEXTS) assert.equal(decode(encode(text)), lossy.decode(encode(text)));
});

function outcome(make) {
  try {
    return make();
  } catch (error) {
    return error.constructor.name;
  }
}

test("a console prints texts as they are, errors with their words, and the rest as JSON", () => {
  const error = new RangeError("boom-42", { cause: new Error("deeper") });
  error.stack = "    at run (a.js:1:2)\n";
  assert.match(words(error), /^RangeError: boom-42\n {4}at run \(a\.js:1:2\)\ncaused by Error: deeper/u);
  assert.deepEqual(["a", 1n, null, undefined, { a: [1] }].map(words), ["a", "1n", "null", "undefined", '{"a":[1]}']);
  const ring = {};
  ring.ring = ring;
  assert.equal(words(ring), "[object Object]");
});
