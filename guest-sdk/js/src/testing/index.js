// Running an activity in a unit test, without a host.
//
// A fake context hands out only keys that a host would derive from the run id that the test gave: never a random one.

import { call, declarationOf } from "../activity.js";
import { Context } from "../context.js";
import { FakeHost } from "./fake_host.js";

export { Answer } from "./answer.js";

/** A context for a unit test. Each request needs an answer in the script; one without throws and names the request. */
export class FakeContext extends Context {
  #host;

  constructor(host) {
    super(host);
    this.#host = host;
  }

  /**
   * The first of three attempts of the run with this id, a UUID that the test writes down, so that its keys are the same
   * whenever the test runs. Throws when it is none: there is no key to hand out then.
   */
  static forRun(runId) {
    return new FakeContext(new FakeHost(runId));
  }

  /** Adds the answer to the next request that has none yet. */
  answer(answer) {
    this.#host.script.push(answer);
  }

  /** Every request so far, in order. */
  sent() {
    return [...this.#host.sent];
  }

  /** Every message so far, in order. Each is kept by the stream `TEST` unless it is refused. */
  sentMessages() {
    return [...this.#host.messages];
  }

  /** The next message that is not refused yet fails with this error of the host. */
  refuseMessage(code, text = "scripted by the test") {
    this.#host.messageErrors.push({ tag: code === "message-refused" ? "refused" : code, val: text });
  }

  /** Every file so far, in order. */
  writtenFiles() {
    return [...this.#host.files];
  }

  /** The next write that is not refused yet fails with this error of the host. */
  refuseWrite(code, text = "scripted by the test") {
    this.#host.fileErrors.push({ tag: code === "write-failed" ? "failed" : code, val: text });
  }

  /** Delivers a signal to the run. */
  deliver(name, payload = null) {
    this.#host.inbox.deliver(name, JSON.stringify(payload));
  }

  /** Makes this the attempt of that number, with the saved state of the attempts before, and their signals. */
  setAttempt(attempt) {
    this.#host.inbox.beginAttempt();
    this.#host.info.attempt = attempt;
  }

  setMaxAttempts(attempts) {
    this.#host.info.maxAttempts = attempts;
  }

  setActivity(name) {
    this.#host.info.activity = name;
  }

  setRemaining(milliseconds) {
    this.#host.info.remainingMs = milliseconds;
  }

  /** Asks the attempt to stop. */
  cancel() {
    this.#host.cancel();
  }

  /** Runs an activity on a JSON text, as the host does, and gives its output as JSON text, or the promise of it. */
  runJson(activity, input) {
    return call(declarationOf(activity), this, input);
  }
}
