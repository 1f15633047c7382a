// Signals to the activity under test. What a call was given it is given again in every later attempt, as by the host.

import { Refusal } from "../host.js";

const NAME = /^[A-Za-z0-9._-]{1,128}$/u;

export class Inbox {
  #delivered = [];
  #asked = new Map();
  #given = new Map();

  deliver(name, payload) {
    const signal = { name, payload, sequence: this.#delivered.length + 1 };
    this.#delivered.push({ signal, read: false });
  }

  beginAttempt() {
    this.#asked.clear();
  }

  poll(name) {
    return this.#give("poll", name);
  }

  /** A wait with a time-out is over at once when no signal is here. One without an end would never end. */
  wait(name, timeoutMs) {
    const given = this.#give("wait", name);
    if (given === undefined && timeoutMs === undefined) {
      throw new Error(`the activity waits for the signal ${name} without end: deliver it with FakeContext.deliver`);
    }
    return given;
  }

  #give(kind, name) {
    if (!NAME.test(name)) throw new Refusal("invalid-name");
    const call = `${kind} ${name}`;
    const count = this.#asked.get(call) ?? 0;
    this.#asked.set(call, count + 1);
    const place = `${call} ${count}`;
    if (!this.#given.has(place)) this.#given.set(place, this.#take(name));
    return this.#given.get(place);
  }

  #take(name) {
    const found = this.#delivered.find(({ signal, read }) => !read && signal.name === name);
    if (found === undefined) return undefined;
    found.read = true;
    return found.signal;
  }
}
