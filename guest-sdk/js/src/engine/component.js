// The export that the host calls, the same on every engine. Nothing here may hold state between calls.

import { call, declaredIn, descriptorOf, isPromise, unknownActivity } from "../activity.js";
import { Context } from "../context.js";
import { words } from "../words.js";

/**
 * The interface `activities` for the exports of the author's module. The engine says: `host`; `raise(error)`, what to
 * throw for a failure or an error that nobody caught; and `settle(promise)` for an activity that is not done yet.
 */
export function activitiesOf(exports, { host, raise, settle, admit = () => {} }) {
  const declared = declaredIn(exports);
  for (const declaration of declared.values()) admit(declaration);
  return {
    describe: () => [...declared.values()].map(descriptorOf),
    run: (name, input) => {
      try {
        const declaration = declared.get(name);
        if (declaration === undefined) throw unknownActivity(name, declared.keys());
        const output = call(declaration, new Context(host), input);
        return isPromise(output) ? settle(output) : output;
      } catch (error) {
        throw raise(error);
      }
    },
  };
}

/** An error that nobody caught, as the run's log shows it. */
export function uncaughtWords(error) {
  return `Uncaught ${words(error)}`;
}
