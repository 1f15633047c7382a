// What an activity says of its input and output: a schema of this package, any Standard Schema, or a plain JSON Schema.
//
// A plain JSON Schema is shown and not checked: this package brings no validator.

import { Mismatch, isSchema } from "./schema.js";

/** The JSON Schema text that the host shows; undefined when there is none. `side` is `input` or `output`. */
export function schemaText(shape, side) {
  const json = jsonSchema(shape, side);
  return json === undefined ? undefined : JSON.stringify(json);
}

function jsonSchema(shape, side) {
  if (shape === undefined) return undefined;
  if (isSchema(shape)) return shape.json;
  const standard = shape["~standard"];
  if (standard === undefined) return shape;
  return standard.jsonSchema?.[side]?.({ target: "draft-2020-12" });
}

/** Reads an input; a member that is not named is refused. */
export function readInput(shape, value) {
  return isSchema(shape) ? shape.decode(value, "input") : readOther(shape, value, "input");
}

/** Reads an output; a member that is not named is left out. */
export function readOutput(shape, value) {
  return isSchema(shape) ? shape.decodeLenient(value, "output") : readOther(shape, value, "output");
}

/** Reads what came from outside: a member that is not named is left out. */
export function readAnswer(shape, value, place) {
  return isSchema(shape) ? shape.decodeLenient(value, place) : readOther(shape, value, place);
}

function readOther(shape, value, place) {
  const standard = shape?.["~standard"];
  if (standard === undefined) return value;
  const result = standard.validate(value);
  if (result instanceof Promise) throw new Mismatch(place, "its schema checks asynchronously: use one that does not");
  if (result.issues === undefined) return result.value;
  const [issue] = result.issues;
  throw new Mismatch([place, ...(issue.path ?? [])].map(stepOf).join(""), issue.message);
}

function stepOf(step, i) {
  const key = typeof step === "object" ? step.key : step;
  if (i === 0) return key;
  return typeof key === "number" ? `[${key}]` : `.${String(key)}`;
}
