// A scripted answer to a request of the activity under test.

import { bytesOf } from "../options.js";
import { encode } from "../utf8.js";

const EFFECT = "0".repeat(64);
// What the host says; the other codes of an HttpError come from reading an answer.
const ERRORS = [
  "denied",
  "effect-mismatch",
  "in-flight",
  "outcome-unknown",
  "unreachable",
  "timed-out",
  "response-too-large",
  "invalid-request",
  "connection-lost",
];

/** What the next request gets. Each change gives a new one. */
export class Answer {
  #response;
  #error;

  constructor(response, error) {
    this.#response = response;
    this.#error = error;
  }

  /** An answer with this status and an empty body, sent now. */
  static status(status) {
    const body = { tag: "bytes", val: new Uint8Array(0) };
    return new Answer({ status, headers: [], body, source: "sent", effectId: EFFECT });
  }

  /** Status 200 with this JSON. */
  static json(body) {
    return Answer.status(200).withJson(body);
  }

  /** No answer but this error of the host, for example `timed-out`. */
  static error(code, text = "scripted by the test") {
    if (!ERRORS.includes(code)) throw new TypeError(`${code}: the host says one of ${ERRORS.join(", ")}`);
    return new Answer(undefined, { tag: code, val: text });
  }

  withJson(body) {
    return this.withHeader("content-type", "application/json").withBody(JSON.stringify(body));
  }

  withBody(body) {
    const val = bytesOf(body, (words) => new TypeError(words));
    return this.#with({ body: { tag: "bytes", val } });
  }

  withHeader(name, value) {
    return this.#with({ headers: [...(this.#response?.headers ?? []), [name, encode(value)]] });
  }

  /** As from the record of an earlier send. */
  replayed() {
    return this.#with({ source: "replayed" });
  }

  /** As from a record without its body. */
  withoutBody() {
    return this.#with({ body: { tag: "not-kept" }, source: "replayed" });
  }

  #with(change) {
    return new Answer(this.#response && { ...this.#response, ...change }, this.#error);
  }

  /** `{ response }` or `{ error }`. */
  get script() {
    return this.#error === undefined ? { response: this.#response } : { error: this.#error };
  }
}
