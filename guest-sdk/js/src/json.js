// JSON in and out. What cannot be read or written is the failure that the caller names, never a SyntaxError.

import { Failure } from "./failure.js";
import { Mismatch } from "./schema.js";
import { readAnswer } from "./shape.js";

/** Reads JSON, and checks it when there is a schema; anything else is the permanent failure `invalid-json`. */
export function parseJson(text, schema) {
  return read(text, schema, "json", (words, cause) => Failure.permanent("invalid-json", words, { cause }));
}

/** The same; `fail(words, cause)` makes the error. `place` is how the value is called in it. */
export function read(text, schema, place, fail) {
  try {
    const value = JSON.parse(text);
    return schema === undefined ? value : readAnswer(schema, value, place);
  } catch (error) {
    if (error instanceof Mismatch || error instanceof SyntaxError) throw fail(error.message, error);
    throw error;
  }
}

/** The JSON text of a value. */
export function write(value, fail) {
  let text;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw fail(error.message, error);
  }
  if (text === undefined) throw fail(`JSON has no word for ${typeof value}`);
  return text;
}
