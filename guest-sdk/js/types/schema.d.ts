// What a value looks like, and what TypeScript makes of it.

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = { readonly [keyword: string]: unknown };

export interface Schema<T> {
  /** The JSON Schema of it. */
  readonly json: JsonSchema;
  /** Reads a value and refuses members that are not named. Throws a `Mismatch` that names the place. */
  decode(value: unknown, place?: string): T;
  /** Reads a value and leaves out members that are not named. */
  decodeLenient(value: unknown, place?: string): T;
  /** May be absent from its object. */
  optional(): OptionalSchema<T>;
  /** May be null. */
  nullable(): Schema<T | null>;
  /** Adds words for people to the JSON Schema. */
  describe(description: string): this;
}

export interface OptionalSchema<T> extends Schema<T | undefined> {
  readonly isOptional: true;
}

/** What decoding throws. */
export interface Mismatch extends Error {
  readonly name: "Mismatch";
  /** For example `input.lines[2].amount`. */
  readonly place: string;
}

/** The type of the values of a schema. */
export type Infer<S> = S extends Schema<infer T> ? T : never;

type Members = Record<string, Schema<any>>;
type Flat<T> = { [K in keyof T]: T[K] };
type ObjectOf<M extends Members> = Flat<
  { [K in keyof M as M[K] extends OptionalSchema<any> ? never : K]: Infer<M[K]> } & {
    [K in keyof M as M[K] extends OptionalSchema<any> ? K : never]?: Infer<M[K]>;
  }
>;

type Range = { minimum?: number; maximum?: number };
type Literal = string | number | boolean | null;

/** Makes schemas. */
export declare const s: {
  string(limits?: { minLength?: number; maxLength?: number; pattern?: string; format?: string }): Schema<string>;
  /** A whole number that JavaScript holds exactly: up to 2^53 - 1. */
  integer(range?: Range): Schema<number>;
  number(range?: Range): Schema<number>;
  boolean(): Schema<boolean>;
  /** One of these. */
  literal<const L extends readonly Literal[]>(...values: L): Schema<L[number]>;
  array<T>(item: Schema<T>, limits?: { minItems?: number; maxItems?: number }): Schema<T[]>;
  object<M extends Members>(members: M): Schema<ObjectOf<M>>;
  /** An object with any names and values of one kind. */
  record<T>(item: Schema<T>): Schema<Record<string, T>>;
  /** The first of these that reads the value. */
  union<U extends readonly Schema<any>[]>(...schemas: U): Schema<Infer<U[number]>>;
  /** Any JSON value. */
  unknown(): Schema<unknown>;
};

/** A schema of any library that keeps to Standard Schema, version 1. */
export interface StandardSchema<T = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => unknown;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
  };
}

/** What an activity says of its input or output. A plain JSON Schema is shown and not checked. */
export type Shape<T> = Schema<T> | StandardSchema<T> | JsonSchema;

/** The type of the values of a shape. */
export type TypeOf<S> =
  S extends Schema<infer T>
    ? T
    : S extends { readonly "~standard": { readonly types?: { readonly output: infer T } | undefined } }
      ? T
      : unknown;
