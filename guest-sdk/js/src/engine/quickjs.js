// A component of QuickJS: small and quick to start, without fetch, timers, or a loop that could wait for a promise.

import "./quickjs-globals.js";

import { Failure } from "../failure.js";
import { activitiesOf, uncaughtWords } from "./component.js";
import { hostOf, witFailure } from "./imports.js";

const OTHER_ENGINE = 'write it without promises, or set "deedbox": { "engine": "spidermonkey" } in package.json';
const toU64 = (value) => value;

/** What the entry module of a component exports as `activities`. */
export function component(exports) {
  return activitiesOf(exports, { host: hostOf(toU64), raise, settle, admit });
}

function admit({ name, isAsync }) {
  if (isAsync) throw new TypeError(`activity ${name} is async, and QuickJS cannot wait: ${OTHER_ENGINE}`);
}

function settle() {
  throw Failure.permanent("invalid-output", `the activity gave a promise, and QuickJS cannot wait: ${OTHER_ENGINE}`);
}

/** The engine lowers a thrown record as the failure, and traps at an error. */
function raise(error) {
  if (error instanceof Failure) return witFailure(error, toU64);
  const said = uncaughtWords(error);
  console.error(said);
  return error instanceof Error ? error : new Error(said);
}
