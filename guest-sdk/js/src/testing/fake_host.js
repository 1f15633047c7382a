// The host of a fake context: it answers from a script and remembers what was asked. It opens no socket.

import { Refusal } from "../host.js";
import { Inbox } from "./inbox.js";
import { Keys } from "./keys.js";
import { Sent, SentMessage, WrittenFile } from "./sent.js";

const TENANT = "test";
const EFFECT = "0".repeat(64);
const MAX_STATE_BYTES = 64 * 1024;
const NO_APPEND =
  "an append that is made twice writes twice: write a file of its own for each run, for example one named by " +
  "`idempotency-key`";

export class FakeHost {
  #keys;
  #cancelled = false;
  #state;
  info;
  inbox = new Inbox();
  script = [];
  sent = [];
  messages = [];
  messageErrors = [];
  files = [];
  fileErrors = [];

  constructor(runId) {
    this.#keys = new Keys(TENANT, runId);
    this.info = { tenant: TENANT, runId, activity: "test", attempt: 1, maxAttempts: 3, remainingMs: 60_000 };
  }

  idempotencyKey() {
    return this.#keys.runKey();
  }

  subkey(name) {
    const key = this.#keys.subkey(name);
    if (key === undefined) throw new Refusal("invalid-name");
    return key;
  }

  run() {
    return { ...this.info };
  }

  cancel() {
    this.#cancelled = true;
  }

  cancelled() {
    return this.#cancelled;
  }

  send(request, options) {
    this.sent.push(new Sent(request, options));
    const answer = this.script.shift();
    if (answer === undefined) {
      throw new Error(`no answer for ${request.method} ${request.url}: add one with FakeContext.answer`);
    }
    const { response, error } = answer.script;
    if (error !== undefined) throw new Refusal(error);
    return response;
  }

  publish(subject, payload, options) {
    this.messages.push(new SentMessage(subject, payload, options));
    const error = this.messageErrors.shift();
    if (error !== undefined) throw new Refusal(error);
    const sequence = this.messages.length;
    const messageId = `00000000-0000-8000-8000-${String(sequence).padStart(12, "0")}`;
    return { stream: "TEST", sequence, duplicate: false, messageId, source: "sent", effectId: EFFECT };
  }

  write(path, bytes, identity) {
    this.files.push(new WrittenFile(path, bytes, identity));
    const error = this.fileErrors.shift();
    if (error !== undefined) throw new Refusal(error);
    return { source: "sent", effectId: EFFECT };
  }

  append() {
    throw new Refusal({ tag: "denied", val: NO_APPEND });
  }

  pollSignal(name) {
    return this.inbox.poll(name);
  }

  waitSignal(name, timeoutMs) {
    return this.inbox.wait(name, timeoutMs);
  }

  save(state) {
    if (state.length > MAX_STATE_BYTES) throw new Refusal("too-large");
    this.#state = state.slice();
  }

  load() {
    return this.#state?.slice();
  }
}
