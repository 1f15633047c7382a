// A small note from one attempt to the next attempt of the same run.
//
// It is for progress, not for effects: the ledger alone remembers what was sent.

import { CheckpointError } from "./failure.js";
import { asking } from "./host.js";
import { read, write } from "./json.js";
import { decode, encode } from "./utf8.js";

/** The saved state of this run. It holds one value: saving replaces it. */
export class Checkpoint {
  #host;

  constructor(host) {
    this.#host = host;
  }

  /** Replaces the saved state by `state` as JSON. Durable once it returns. */
  save(state) {
    this.saveBytes(encode(write(state, format)));
  }

  /** The state saved last, by this or an earlier attempt; undefined when there is none. */
  load(schema) {
    const bytes = this.loadBytes();
    return bytes === undefined ? undefined : read(textOf(bytes), schema, "state", format);
  }

  saveBytes(state) {
    asking(
      () => this.#host.save(state),
      () => new CheckpointError("checkpoint-too-large"),
    );
  }

  loadBytes() {
    return this.#host.load();
  }
}

const format = (words, cause) => new CheckpointError("checkpoint-format", words, { cause });

function textOf(bytes) {
  try {
    return decode(bytes);
  } catch (error) {
    throw format(error.message, error);
  }
}
