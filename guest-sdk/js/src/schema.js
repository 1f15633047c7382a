// What a value looks like: one description that reads values, gives TypeScript its types, and is shown as JSON Schema.
//
// Reading never changes a value but for members that are not named, which a lenient reading leaves out. It never
// throws anything but a Mismatch, whatever the value is.

/** A value does not fit. `place` says where, for example `input.lines[2].amount`. */
export class Mismatch extends Error {
  constructor(place, words) {
    super(`${place}: ${words}`);
    this.name = "Mismatch";
    this.place = place;
  }
}

class Schema {
  #read;

  /** `read(value, place, strict)` gives the value or throws a Mismatch. */
  constructor(json, read, isOptional = false) {
    this.json = json;
    this.#read = read;
    this.isOptional = isOptional;
  }

  /** Reads a value and refuses members that are not named. */
  decode(value, place = "value") {
    return this.#read(value, place, true);
  }

  /** Reads a value and leaves out members that are not named. */
  decodeLenient(value, place = "value") {
    return this.#read(value, place, false);
  }

  read(value, place, strict) {
    return this.#read(value, place, strict);
  }

  optional() {
    const read = (value, place, strict) => (value === undefined ? undefined : this.#read(value, place, strict));
    return new Schema(this.json, read, true);
  }

  nullable() {
    const read = (value, place, strict) => (value === null ? null : this.#read(value, place, strict));
    return new Schema({ anyOf: [this.json, { type: "null" }] }, read, this.isOptional);
  }

  describe(description) {
    return new Schema({ ...this.json, description }, this.#read, this.isOptional);
  }
}

/** Makes schemas. */
export const s = {
  string: ({ minLength, maxLength, pattern, format } = {}) => {
    const expression = pattern === undefined ? undefined : new RegExp(pattern, "u");
    const json = defined({ type: "string", minLength, maxLength, pattern: expression?.source, format });
    return new Schema(json, (value, place) => {
      if (typeof value !== "string") expected("a string", value, place);
      const length = minLength === undefined && maxLength === undefined ? 0 : [...value].length;
      if (length < minLength) throw new Mismatch(place, `has ${length} characters, at least ${minLength} are wanted`);
      if (length > maxLength) throw new Mismatch(place, `has ${length} characters, at most ${maxLength} are allowed`);
      if (expression?.test(value) === false) throw new Mismatch(place, `does not match ${expression.source}`);
      return value;
    });
  },
  /** A whole number that JavaScript holds exactly. */
  integer: ({ minimum, maximum } = {}) =>
    new Schema(defined({ type: "integer", minimum, maximum }), (value, place) => {
      if (typeof value !== "number" || !Number.isInteger(value)) expected("a whole number", value, place);
      if (!Number.isSafeInteger(value)) throw new Mismatch(place, "is beyond 2^53 - 1: send it as a string");
      return within(value, place, minimum, maximum);
    }),
  number: ({ minimum, maximum } = {}) =>
    new Schema(defined({ type: "number", minimum, maximum }), (value, place) => {
      if (typeof value !== "number" || !Number.isFinite(value)) expected("a number", value, place);
      return within(value, place, minimum, maximum);
    }),
  boolean: () =>
    new Schema({ type: "boolean" }, (value, place) => {
      if (typeof value !== "boolean") expected("true or false", value, place);
      return value;
    }),
  /** One of these strings, numbers, booleans, or null. */
  literal: (...values) =>
    new Schema(values.length === 1 ? { const: values[0] } : { enum: values }, (value, place) => {
      if (!values.includes(value)) {
        const words = values.map((it) => JSON.stringify(it)).join(", ");
        expected(values.length === 1 ? words : `one of ${words}`, value, place);
      }
      return value;
    }),
  array: (item, { minItems, maxItems } = {}) =>
    new Schema(defined({ type: "array", items: item.json, minItems, maxItems }), (value, place, strict) => {
      if (!Array.isArray(value)) expected("an array", value, place);
      if (value.length < minItems)
        throw new Mismatch(place, `has ${value.length} items, at least ${minItems} are wanted`);
      if (value.length > maxItems)
        throw new Mismatch(place, `has ${value.length} items, at most ${maxItems} are allowed`);
      return value.map((it, i) => item.read(it, `${place}[${i}]`, strict));
    }),
  object: (members) => objectOf(members),
  /** An object with any names and values of one kind. */
  record: (item) =>
    new Schema({ type: "object", additionalProperties: item.json }, (value, place, strict) => {
      if (!isObject(value)) expected("an object", value, place);
      const read = ([name, it]) => [name, item.read(it, `${place}${step(name)}`, strict)];
      return Object.fromEntries(Object.entries(value).map(read));
    }),
  /** The first of these that reads the value. */
  union: (...schemas) =>
    new Schema({ anyOf: schemas.map((schema) => schema.json) }, (value, place, strict) => {
      const why = [];
      for (const schema of schemas) {
        try {
          return schema.read(value, place, strict);
        } catch (error) {
          if (!(error instanceof Mismatch)) throw error;
          why.push(error.message);
        }
      }
      throw new Mismatch(place, `fits none of ${schemas.length} kinds (${why.join("; ")})`);
    }),
  /** Any JSON value. */
  unknown: () =>
    new Schema({}, (value, place) => {
      if (value === undefined) throw new Mismatch(place, "missing");
      return value;
    }),
};

function objectOf(members) {
  const names = Object.keys(members);
  const required = names.filter((name) => !members[name].isOptional);
  const properties = Object.fromEntries(names.map((name) => [name, members[name].json]));
  const json = { type: "object", properties, required, additionalProperties: false };
  return new Schema(json, (value, place, strict) => {
    if (!isObject(value)) expected("an object", value, place);
    const unknown = strict ? Object.keys(value).find((name) => !Object.hasOwn(members, name)) : undefined;
    if (unknown !== undefined) {
      throw new Mismatch(`${place}${step(unknown)}`, `unknown member; known are ${names.join(", ") || "none"}`);
    }
    const read = [];
    for (const name of names) {
      const found = Object.hasOwn(value, name) ? value[name] : undefined;
      const at = `${place}${step(name)}`;
      if (found !== undefined) read.push([name, members[name].read(found, at, strict)]);
      else if (!members[name].isOptional) throw new Mismatch(at, "missing");
    }
    return Object.fromEntries(read);
  });
}

/** True for what `s` makes. */
export function isSchema(value) {
  return value instanceof Schema;
}

function within(value, place, minimum, maximum) {
  if (value < minimum) throw new Mismatch(place, `is ${value}, at least ${minimum} is wanted`);
  if (value > maximum) throw new Mismatch(place, `is ${value}, at most ${maximum} is allowed`);
  return value;
}

function expected(what, value, place) {
  if (value === undefined) throw new Mismatch(place, "missing");
  throw new Mismatch(place, `expected ${what}, got ${kind(value)}`);
}

function kind(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  switch (typeof value) {
    case "string":
      return "a string";
    case "number":
      return Number.isInteger(value) ? "a whole number" : "a number";
    case "boolean":
      return String(value);
    case "object":
      return "an object";
    default:
      return `a ${typeof value}`;
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function step(name) {
  return /^[A-Za-z_$][\w$]*$/u.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}

function defined(object) {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}
