// BLAKE3 in derive_key mode for up to 1024 bytes, which is one chunk: a run's keys never need more.

const IV = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
const ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
const BLOCK = 64;
const CHUNK = 1024;

const CHUNK_START = 1;
const CHUNK_END = 2;
const ROOT = 8;
const DERIVE_KEY_CONTEXT = 32;
const DERIVE_KEY_MATERIAL = 64;

/** 32 bytes from a context string, given as bytes, and key material. */
export function deriveKey(context, material) {
  const key = hash(IV, context, DERIVE_KEY_CONTEXT);
  return bytesOf(hash(key, material, DERIVE_KEY_MATERIAL));
}

function hash(key, input, mode) {
  if (input.length > CHUNK) throw new RangeError(`${input.length} bytes are more than one chunk`);
  const blocks = Math.max(1, Math.ceil(input.length / BLOCK));
  let value = key;
  for (let i = 0; i < blocks; i += 1) {
    const block = input.subarray(i * BLOCK, (i + 1) * BLOCK);
    const start = i === 0 ? CHUNK_START : 0;
    const end = i === blocks - 1 ? CHUNK_END | ROOT : 0;
    value = compress(value, wordsOf(block), block.length, mode | start | end);
  }
  return value;
}

/** The first half of the output, which is the chaining value. The counter of the only chunk is 0. */
function compress(value, block, length, flags) {
  const state = Uint32Array.from([...value, ...IV.slice(0, 4), 0, 0, length, flags]);
  let message = block;
  for (let round = 0; round < 7; round += 1) {
    if (round > 0) message = ORDER.map((from) => message[from]);
    mixAll(state, message);
  }
  return Array.from({ length: 8 }, (_, i) => (state[i] ^ state[i + 8]) >>> 0);
}

function mixAll(state, message) {
  for (let i = 0; i < 4; i += 1) {
    mix(state, i, 4 + i, 8 + i, 12 + i, message[2 * i], message[2 * i + 1]);
  }
  for (let i = 0; i < 4; i += 1) {
    mix(state, i, 4 + ((i + 1) % 4), 8 + ((i + 2) % 4), 12 + ((i + 3) % 4), message[8 + 2 * i], message[9 + 2 * i]);
  }
}

function mix(state, a, b, c, d, first, second) {
  state[a] = state[a] + state[b] + first;
  state[d] = rotate(state[d] ^ state[a], 16);
  state[c] += state[d];
  state[b] = rotate(state[b] ^ state[c], 12);
  state[a] = state[a] + state[b] + second;
  state[d] = rotate(state[d] ^ state[a], 8);
  state[c] += state[d];
  state[b] = rotate(state[b] ^ state[c], 7);
}

function rotate(word, bits) {
  return (word >>> bits) | (word << (32 - bits));
}

function wordsOf(block) {
  const padded = new Uint8Array(BLOCK);
  padded.set(block);
  const view = new DataView(padded.buffer);
  return Array.from({ length: 16 }, (_, i) => view.getUint32(4 * i, true));
}

function bytesOf(words) {
  const bytes = new Uint8Array(32);
  const view = new DataView(bytes.buffer);
  words.forEach((word, i) => view.setUint32(4 * i, word, true));
  return bytes;
}
