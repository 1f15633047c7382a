// Options of a call. A misspelt one is an error: a name of an effect that nobody reads would be no name.

import { encode } from "./utf8.js";

const ON_UNKNOWN = ["provider-default", "ask", "at-most-once", "at-least-once"];

/** Refuses an option that is not known. */
export function checkKnown(options, known, fail) {
  const strange = Object.keys(options).find((name) => !known.includes(name));
  if (strange !== undefined) throw fail(`the option ${strange} is not known; known are ${known.join(", ")}`);
}

/** How an effect is told apart, as the WIT has it. */
export function identityOf({ effect, business }, fail) {
  if (effect !== undefined && business !== undefined) {
    throw fail("`effect` and `business` both name the effect: name it once");
  }
  if (effect !== undefined) {
    if (typeof effect !== "string") throw fail("`effect` is a name of 1 to 256 bytes");
    return { tag: "named", val: effect };
  }
  if (business === undefined) return { tag: "positional" };
  const { operation, key, ...rest } = business;
  if (typeof operation !== "string" || typeof key !== "string" || Object.keys(rest).length > 0) {
    throw fail("`business` is { operation, key }, both of them strings");
  }
  return { tag: "business", val: { operation, key } };
}

export function onUnknownOf({ onUnknown = "provider-default" }, fail) {
  if (!ON_UNKNOWN.includes(onUnknown)) throw fail(`\`onUnknown\` is one of ${ON_UNKNOWN.join(", ")}`);
  return onUnknown;
}

/** The one of these options that is there, as `[name, value]`; undefined when there is none. */
export function theOneOf(options, names, fail) {
  const given = names.filter((name) => options[name] !== undefined);
  if (given.length > 1)
    throw fail(`${given.map((name) => `\`${name}\``).join(" and ")} both say the body: say it once`);
  return given.length === 0 ? undefined : [given[0], options[given[0]]];
}

/** Bytes of a string, of a Uint8Array, or of an ArrayBuffer. */
export function bytesOf(value, fail) {
  if (typeof value === "string") return encode(value);
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  throw fail("give a string or a Uint8Array");
}

/** `[name, value]` pairs of an object, whose values may be arrays, or of pairs. */
export function pairsOf(headers) {
  const entries = Array.isArray(headers) ? headers : Object.entries(headers ?? {});
  return entries.flatMap(([name, value]) => (Array.isArray(value) ? value.map((it) => [name, it]) : [[name, value]]));
}
