// HTTP through the ledger: a request, and how its effect is told apart.
//
// The host claims each effect before it sends it, and answers it from the record when it was sent before. So nothing here
// may retry by itself, follow a redirect, or invent a header or a key.

import { HttpError } from "./failure.js";
import { MOST_U32, asking, milliseconds } from "./host.js";
import { write } from "./json.js";
import { bytesOf, checkKnown, identityOf, onUnknownOf, pairsOf, theOneOf } from "./options.js";
import { Response } from "./response.js";
import { encode } from "./utf8.js";

const KNOWN = ["effect", "business", "onUnknown", "lookup", "headers", "json", "form", "body", "timeoutMs"];
const KNOWN_LOOKUP = ["url", "headers", "found", "absent", "settleMs"];
const KNOWN_CONDITION = ["statuses", "pointer", "equals"];

/** Where requests start. Each waits for its answer; every status is an answer. */
export class Http {
  #host;

  constructor(host) {
    this.#host = host;
  }

  get(url, options) {
    return this.request("GET", url, options);
  }

  post(url, options) {
    return this.request("POST", url, options);
  }

  put(url, options) {
    return this.request("PUT", url, options);
  }

  patch(url, options) {
    return this.request("PATCH", url, options);
  }

  delete(url, options) {
    return this.request("DELETE", url, options);
  }

  request(method, url, options = {}) {
    checkKnown(options, KNOWN, invalid);
    const request = requestOf(method, String(url), options);
    const how = {
      identity: identityOf(options, invalid),
      onUnknown: onUnknownOf(options, invalid),
      lookup: options.lookup === undefined ? undefined : lookupOf(options.lookup),
    };
    return new Response(
      asking(
        () => this.#host.send(request, how),
        (tag, val) => new HttpError(tag, val),
      ),
    );
  }
}

const invalid = (words) => new HttpError("invalid-request", words);

function requestOf(method, url, options) {
  const headers = headersOf(options.headers);
  const timeoutMs = options.timeoutMs === undefined ? undefined : milliseconds(options.timeoutMs, MOST_U32, invalid);
  const [type, body] = bodyOf(options);
  if (type !== undefined && !headers.some(([name]) => name.toLowerCase() === "content-type")) {
    headers.push(["content-type", encode(type)]);
  }
  return { method, url, headers, body, timeoutMs };
}

function bodyOf(options) {
  const given = theOneOf(options, ["json", "form", "body"], invalid);
  if (given === undefined) return [undefined, new Uint8Array(0)];
  const [name, value] = given;
  switch (name) {
    case "json":
      return ["application/json", encode(write(value, (words) => invalid(`the body is not JSON: ${words}`)))];
    case "form":
      return ["application/x-www-form-urlencoded", encode(formOf(value))];
    default:
      return [undefined, bytesOf(value, (words) => invalid(`the body: ${words}`))];
  }
}

/** `a=1&b=x+y`, in the order given: the body is part of what the ledger compares. */
export function formOf(pairs) {
  const part = (text) =>
    encodeURIComponent(String(text))
      .replace(/%20/gu, "+")
      .replace(/[!'()~]/gu, (it) => `%${hex(it.charCodeAt(0))}`);
  return pairsOf(pairs)
    .map(([name, value]) => `${part(name)}=${part(value)}`)
    .join("&");
}

function hex(byte) {
  return byte.toString(16).toUpperCase();
}

function headersOf(headers) {
  return pairsOf(headers).map(([name, value]) => [
    name,
    bytesOf(value, (words) => invalid(`header ${name}: ${words}`)),
  ]);
}

function lookupOf(lookup) {
  checkKnown(lookup, KNOWN_LOOKUP, (words) => invalid(`lookup: ${words}`));
  const { url, headers, found, absent, settleMs = 0 } = lookup;
  const request = { method: "GET", url: String(url), headers: headersOf(headers), body: new Uint8Array(0) };
  return {
    request: { ...request, timeoutMs: undefined },
    found: conditionOf("found", found),
    absent: conditionOf("absent", absent),
    settleMs: milliseconds(settleMs, MOST_U32, invalid),
  };
}

function conditionOf(name, condition) {
  const fail = (words) => invalid(`lookup.${name}: ${words}`);
  if (!Array.isArray(condition?.statuses)) throw fail("say its statuses, for example { statuses: [200] }");
  checkKnown(condition, KNOWN_CONDITION, fail);
  const { statuses, pointer, equals } = condition;
  if (equals !== undefined && pointer === undefined) throw fail("`equals` needs the `pointer` to what is compared");
  return { statuses, pointer, equals };
}
