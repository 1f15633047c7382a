// Messages through the ledger: what is published, how its effect is told apart, and where the server keeps it.
//
// The host claims each message first and gives it an id that is the same in every attempt. So nothing here may retry by
// itself or invent an id.

import { MessageError } from "./failure.js";
import { asking } from "./host.js";
import { write } from "./json.js";
import { bytesOf, checkKnown, identityOf, onUnknownOf, pairsOf, theOneOf } from "./options.js";
import { encode } from "./utf8.js";

const KNOWN = ["effect", "business", "onUnknown", "headers", "json", "payload"];

/** Where messages start. */
export class Messages {
  #host;

  constructor(host) {
    this.#host = host;
  }

  /** Publishes a message and waits until the server keeps it, or answers from the ledger. */
  publish(subject, options = {}) {
    checkKnown(options, KNOWN, invalid);
    const headers = pairsOf(options.headers).map(([name, value]) => [name, String(value)]);
    const payload = payloadOf(options, headers);
    const how = { identity: identityOf(options, invalid), onUnknown: onUnknownOf(options, invalid), headers };
    return asking(() => this.#host.publish(subject, payload, how), refused);
  }
}

const invalid = (words) => new MessageError("invalid-request", words);
const refused = (tag, val) => new MessageError(tag === "refused" ? "message-refused" : tag, val);

function payloadOf(options, headers) {
  const given = theOneOf(options, ["json", "payload"], invalid);
  if (given === undefined) return new Uint8Array(0);
  const [name, value] = given;
  if (name === "payload") return bytesOf(value, (words) => invalid(`the payload: ${words}`));
  if (!headers.some(([it]) => it.toLowerCase() === "content-type")) headers.push(["Content-Type", "application/json"]);
  return encode(write(value, (words) => invalid(`the payload is not JSON: ${words}`)));
}
