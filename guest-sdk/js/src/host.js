// The calls that an activity can make, as one object, so that a test can answer them.
//
// It is exactly the imports of the WIT world. A refused call throws a Refusal with the WIT's own error in it; every other
// error is the engine's and goes on to the author.

/** What the host answered instead of a value: `tag`, and `val` where the case has one. */
export class Refusal extends Error {
  constructor(payload) {
    const tag = typeof payload === "string" ? payload : payload.tag;
    super(tag);
    this.name = "Refusal";
    this.tag = tag;
    this.val = payload.val;
  }
}

/** Calls `make`, and turns a refusal into what `fail(tag, val)` gives. */
export function asking(make, fail) {
  try {
    return make();
  } catch (error) {
    if (error instanceof Refusal) throw fail(error.tag, error.val);
    throw error;
  }
}

/** Milliseconds for a `u32` or `u64` of the WIT, rounded up. `fail(words)` makes the error for what is no time. */
export function milliseconds(value, most, fail) {
  if (typeof value !== "number" || !(value >= 0)) throw fail(`${String(value)} is no time in milliseconds`);
  return Math.min(Math.ceil(value), most);
}

export const MOST_U32 = 0xffffffff;
export const MOST_U64 = Number.MAX_SAFE_INTEGER;
