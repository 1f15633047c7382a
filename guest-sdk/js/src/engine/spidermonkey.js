// A component of SpiderMonkey: large, slow to compile at upload, with fetch over wasi:http, timers, and async activities.

import { Failure } from "../failure.js";
import { headOf } from "../words.js";
import { activitiesOf, uncaughtWords } from "./component.js";
import { hostOf, witFailure } from "./imports.js";

const toU64 = (value) => BigInt(value);

// The engine's own generator is not promised to begin with the host's random numbers, which every attempt gets again.
Math.random = () => {
  const [low, high] = crypto.getRandomValues(new Uint32Array(2));
  return (low + (high & 0x1fffff) * 2 ** 32) / 2 ** 53;
};

/** What the entry module of a component exports as `activities`. */
export function component(exports) {
  return activitiesOf(exports, { host: hostOf(toU64), raise, settle });
}

function settle(promise) {
  return promise.then(undefined, (error) => {
    throw raise(error);
  });
}

/** The engine lowers the `payload` of what is thrown as the failure, and traps when that throws. */
function raise(error) {
  if (error instanceof Failure) return Object.assign(new Error(error.code), { payload: witFailure(error, toU64) });
  console.error(uncaughtWords(error));
  // The engine prints what it meets here, after that and in one line.
  const said = error instanceof Error ? headOf(error) : error;
  const payload = {
    get code() {
      throw said;
    },
  };
  return Object.assign(new Error("uncaught"), { payload });
}
