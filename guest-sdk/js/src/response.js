// An answer, from the provider or from the record of an earlier send. A missing body is an error, never an empty body.

import { HttpError } from "./failure.js";
import { read } from "./json.js";
import { decode } from "./utf8.js";

/** An answer with any status. */
export class Response {
  #body;

  constructor({ status, headers, body, source, effectId }) {
    this.status = status;
    this.headers = headers;
    this.source = source;
    this.effectId = effectId;
    this.#body = body;
  }

  /** Whether the status is 200 to 299. */
  get ok() {
    return this.status >= 200 && this.status < 300;
  }

  /** The first header of that name, in any case, when its value is text. */
  header(name) {
    const wanted = name.toLowerCase();
    const found = this.headers.find(([it]) => it.toLowerCase() === wanted);
    try {
      return found && decode(found[1]);
    } catch {
      return undefined;
    }
  }

  /** The body. Throws `body-not-kept` when the record has none. */
  bytes() {
    if (this.#body.tag === "not-kept") throw new HttpError("body-not-kept");
    return this.#body.val;
  }

  /** The body as UTF-8. */
  text() {
    const bytes = this.bytes();
    try {
      return decode(bytes);
    } catch (error) {
      throw unexpected(error.message, error);
    }
  }

  /** The body as JSON. With a schema it is checked, and members that the schema does not name are left out. */
  json(schema) {
    return read(this.text(), schema, "body", unexpected);
  }

  /** The answer itself unless its status is 400 or higher: then an error, retryable for 5xx, 408, 425 and 429. */
  errorForStatus() {
    if (this.status >= 400) throw HttpError.ofStatus(this.status);
    return this;
  }
}

function unexpected(words, cause) {
  return new HttpError("unexpected-body", words, { cause });
}
