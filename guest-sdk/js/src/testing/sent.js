// What the activity under test asked for, for assertions: each as the host would have got it.

import { decode } from "../utf8.js";

/** One request. */
export class Sent {
  constructor(request, options) {
    Object.assign(this, request, options);
  }

  /** The first header of that name, in any case. */
  header(name) {
    const found = this.headers.find(([it]) => it.toLowerCase() === name.toLowerCase());
    return found && decode(found[1], true);
  }

  /** The body as JSON; null when it is none. */
  json() {
    return jsonOf(this.body);
  }
}

/** One message. */
export class SentMessage {
  constructor(subject, payload, options) {
    Object.assign(this, { subject, payload }, options);
  }

  /** The payload as JSON; null when it is none. */
  json() {
    return jsonOf(this.payload);
  }
}

/** One write. */
export class WrittenFile {
  constructor(path, bytes, identity) {
    Object.assign(this, { path, bytes, identity });
  }

  text() {
    return decode(this.bytes, true);
  }
}

function jsonOf(bytes) {
  try {
    return JSON.parse(decode(bytes));
  } catch {
    return null;
  }
}
