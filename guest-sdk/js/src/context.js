// What an activity is handed: the run's keys, what is known about the run, and the ways out.
//
// Nothing in here makes up a key: they come from the host, the same in every attempt.

import { Checkpoint } from "./checkpoint.js";
import { KeyError } from "./failure.js";
import { Files } from "./files.js";
import { asking } from "./host.js";
import { Http } from "./http.js";
import { Messages } from "./messages.js";
import { Signals } from "./signals.js";

/** The run that an activity serves. */
export class Context {
  #host;

  constructor(host) {
    this.#host = host;
    this.http = new Http(host);
    this.messages = new Messages(host);
    this.files = new Files(host);
    this.signals = new Signals(host);
    this.checkpoint = new Checkpoint(host);
  }

  /** The run key: the same in every attempt of this run, and in no other run. */
  idempotencyKey() {
    return this.#host.idempotencyKey();
  }

  /** A key for one of several effects of this run. The same name always gives the same key. */
  subkey(name) {
    return asking(
      () => this.#host.subkey(name),
      () => new KeyError(),
    );
  }

  /** What is known about the run. The host is asked each time. */
  run() {
    return this.#host.run();
  }

  /** True once this attempt was asked to stop. Return soon: the host stops it otherwise. */
  cancelled() {
    return this.#host.cancelled();
  }
}
