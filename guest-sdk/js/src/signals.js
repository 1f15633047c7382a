// Messages to this run.
//
// What a call here gave is recorded by the host and given again to the same call of every later attempt. It is for what
// the outside tells the run; it carries nothing to the outside.

import { SignalError } from "./failure.js";
import { MOST_U64, asking, milliseconds } from "./host.js";
import { read } from "./json.js";

/** The signals of this run. */
export class Signals {
  #host;

  constructor(host) {
    this.#host = host;
  }

  /** The oldest unread signal of that name, if one is here. */
  poll(name) {
    return given(asking(() => this.#host.pollSignal(name), refused));
  }

  /**
   * Waits for a signal of that name, without end. A long wait ends this attempt without spending a retry; the run starts
   * again when the signal is here, and this call then gives it.
   */
  wait(name) {
    const signal = asking(() => this.#host.waitSignal(name, undefined), refused);
    if (signal === undefined) throw new SignalError("signal-missing");
    return given(signal);
  }

  /** The same with an end, counted from the first attempt that waits here: undefined when no signal came in time. */
  waitFor(name, timeoutMs) {
    const limit = milliseconds(timeoutMs, MOST_U64, (words) => new TypeError(`waitFor: ${words}`));
    return given(asking(() => this.#host.waitSignal(name, limit), refused));
  }
}

/** One message to the run. */
class Signal {
  constructor({ name, payload, sequence }) {
    this.name = name;
    this.payload = payload;
    this.sequence = sequence;
  }

  /** The payload read as JSON. */
  json(schema) {
    return read(this.payload, schema, "payload", (words, cause) => new SignalError("signal-format", words, { cause }));
  }
}

function given(signal) {
  return signal === undefined ? undefined : new Signal(signal);
}

function refused(tag) {
  return new SignalError(tag === "invalid-name" ? "signal-invalid-name" : "signal-too-many-calls");
}
