// The keys of a fake run, derived as the host derives them, so that a test can state them as text. Nothing here may be
// random: an unstable key in a test hides the bug that the test is for.

import { encode } from "../utf8.js";
import { deriveKey } from "./blake3.js";

const RUN_KEY = encode("deedbox 2026 run key");
const SUBKEY = encode("deedbox 2026 subkey");
const MAX_NAME_BYTES = 256;
const RUN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/u;

export class Keys {
  #runKey;

  /** Throws when there is no run id: there is no key to hand out then. */
  constructor(tenant, runId) {
    if (runId === undefined || runId === "") {
      throw new TypeError("a test context needs a run id, for its keys come from it: write a UUID into the test");
    }
    if (typeof runId !== "string" || !RUN_ID.test(runId)) {
      throw new TypeError(`${JSON.stringify(runId)} is not a run id: write a lower-case hyphenated UUID into the test`);
    }
    this.#runKey = deriveKey(RUN_KEY, fields(encode(tenant), encode(runId)));
  }

  runKey() {
    return textOf(this.#runKey);
  }

  /** Undefined when the name is empty or longer than 256 bytes. */
  subkey(name) {
    const bytes = encode(name);
    if (bytes.length < 1 || bytes.length > MAX_NAME_BYTES) return undefined;
    return textOf(deriveKey(SUBKEY, fields(this.#runKey, bytes)));
  }
}

/** Each field after its length, in four bytes, little-endian. */
function fields(...values) {
  const all = values.flatMap((value) => {
    const length = new Uint8Array(4);
    new DataView(length.buffer).setUint32(0, value.length, true);
    return [...length, ...value];
  });
  return Uint8Array.from(all);
}

/** The first 128 bits as a UUID of version 8. */
function textOf(key) {
  const bytes = key.slice(0, 16);
  bytes[6] = (bytes[6] & 0x0f) | 0x80;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/u, "$1-$2-$3-$4-");
}
