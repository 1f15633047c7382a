// Activities, and the typed call around each.
//
// It turns JSON texts into the author's values and back. What a caller sent must never end in an uncaught error: an input
// that does not fit is a permanent failure that names the place.

import { Failure } from "./failure.js";
import { Mismatch } from "./schema.js";
import { readInput, readOutput, schemaText } from "./shape.js";

// By this name two copies of the package in one bundle know each other's activities.
const DECLARED = Symbol.for("deedbox.activity");
const NAME = /^[A-Za-z0-9._-]{1,128}$/u;
const KNOWN = ["name", "summary", "input", "output"];

/** Declares an activity. Export what it gives from the project's entry module; a test calls it as the function it is. */
export function activity(declaration, body) {
  const strange = Object.keys(declaration).find((member) => !KNOWN.includes(member));
  if (strange !== undefined) throw new TypeError(`activity: ${strange} is not known; known are ${KNOWN.join(", ")}`);
  const { name, summary = "", input, output } = declaration;
  if (typeof name !== "string" || !NAME.test(name)) {
    throw new TypeError(`activity: ${JSON.stringify(name)} is no name: take 1 to 128 of A-Z a-z 0-9 . _ -`);
  }
  if (typeof body !== "function") throw new TypeError(`activity ${name}: its body is not a function`);
  const callable = (ctx, value) => body(ctx, value);
  const isAsync = Object.prototype.toString.call(body) === "[object AsyncFunction]";
  Object.defineProperty(callable, DECLARED, { value: { name, summary, input, output, body, isAsync } });
  return callable;
}

/** The declarations among the exports of a module, by name. Throws when there is none, or two have one name. */
export function declaredIn(exports) {
  const found = new Map();
  for (const value of Object.values(exports)) {
    const declaration = typeof value === "function" ? value[DECLARED] : undefined;
    if (declaration === undefined || found.get(declaration.name) === declaration) continue;
    if (found.has(declaration.name)) throw new TypeError(`two activities have the name ${declaration.name}`);
    found.set(declaration.name, declaration);
  }
  if (found.size === 0) {
    throw new TypeError("the entry module exports no activity: write `export const greet = activity({ … }, …)`");
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The declaration behind what `activity` gave. */
export function declarationOf(callable) {
  const declaration = callable?.[DECLARED];
  if (declaration === undefined) throw new TypeError("this is no activity: it was not made by `activity`");
  return declaration;
}

/** What the host is told of it. */
export function descriptorOf({ name, summary, input, output }) {
  return { name, summary, inputSchema: schemaText(input, "input"), outputSchema: schemaText(output, "output") };
}

/** Runs it on a JSON text and gives its output as one, or the promise of it. Throws what it threw, or a Failure. */
export function call(declaration, ctx, inputText) {
  const input = inputOf(declaration, inputText);
  const output = declaration.body(ctx, input);
  const finish = (value) => outputText(declaration, value);
  return isPromise(output) ? output.then(finish) : finish(output);
}

export function unknownActivity(name, known) {
  const message = `this module has no activity ${JSON.stringify(name)}; it has: ${[...known].join(", ")}`;
  return Failure.permanent("unknown-activity", message);
}

export function isPromise(value) {
  return typeof value?.then === "function";
}

function inputOf({ input }, text) {
  try {
    return readInput(input, JSON.parse(text));
  } catch (error) {
    if (error instanceof Mismatch) throw Failure.permanent("invalid-input", error.message);
    if (error instanceof SyntaxError) throw Failure.permanent("invalid-input", `input: not JSON: ${error.message}`);
    throw error;
  }
}

function outputText({ output }, value) {
  let text;
  try {
    text = JSON.stringify(output === undefined ? value : readOutput(output, value));
  } catch (error) {
    const words = error instanceof Mismatch ? error.message : `the output cannot be written as JSON: ${error.message}`;
    throw Failure.permanent("invalid-output", words);
  }
  // What has no output gives undefined, for which JSON has no word.
  return text ?? "null";
}
