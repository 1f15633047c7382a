// The types of `@deedbox/guest`.

import type { Context } from "./context.js";
import type { Shape, TypeOf } from "./schema.js";

export * from "./context.js";
export * from "./failure.js";
export * from "./schema.js";

/** What `activity` gives: the function itself, which a test may call. */
export type Activity<I, R> = (ctx: Context, input: I) => R;

export interface Declaration<I, O> {
  /** 1 to 128 characters: letters, digits, `.`, `_`, `-`. */
  name: string;
  /** One line for people. */
  summary?: string;
  /** An input that does not fit ends the run with `invalid-input` and names the place. */
  input?: I;
  /** Members that it does not name are left out of the output. */
  output?: O;
}

/** What a body may give for an output of type T: nobody changes it any more. */
type Given<T> = T extends readonly (infer I)[]
  ? readonly Given<I>[]
  : T extends object
    ? { readonly [K in keyof T]: Given<T[K]> }
    : T;
type Result<R, T> = [R] extends [never] ? never : [R] extends [Promise<unknown>] ? Promise<T> : T;

/** Declares an activity. Export what it gives from the project's entry module. Only `spidermonkey` takes async bodies. */
export declare function activity<
  I extends Shape<any> | undefined = undefined,
  O extends Shape<any> | undefined = undefined,
  const R extends Given<TypeOf<O>> | Promise<Given<TypeOf<O>>> = Given<TypeOf<O>>,
>(
  declaration: Declaration<I, O>,
  body: (ctx: Context, input: TypeOf<I>) => R,
): Activity<TypeOf<I>, Result<R, TypeOf<O>>>;

/** Reads JSON, checked when there is a schema; anything else is the permanent failure `invalid-json`. */
export declare function parseJson<S extends Shape<any>>(text: string, schema: S): TypeOf<S>;
export declare function parseJson(text: string): unknown;
