// Putting a bundle into an engine.

import path from "node:path";
import { fileURLToPath } from "node:url";

import { Complaint, tool } from "./tools.mjs";

// `deps/activity` is a copy of the host's interface, held to it by a test.
const WIT = path.join(path.dirname(fileURLToPath(import.meta.url)), "wit");
const ACTIVITY = path.join(WIT, "deps", "activity", "activity.wit");

/** By the name of an engine: what makes a component of `{ project, source }`, as bytes. */
export const ENGINES = { quickjs, spidermonkey };

/** The host has the asynchronous part of the component model switched off, so its `sync` engine is taken. */
async function quickjs({ project, source }) {
  const { componentize } = await tool("componentize-qjs", project);
  const options = { witPath: WIT, world: "component", jsSource: source, sync: true };
  return (await evaluating(componentize(options))).component;
}

/** Without `fetch-event`, the export that answers requests: an activity is called by the host alone. */
async function spidermonkey({ project, source }) {
  const { componentize } = await tool("@bytecodealliance/componentize-js", project);
  const options = { witPath: ACTIVITY, worldName: "activity", disableFeatures: ["fetch-event"] };
  return (await evaluating(componentize(source, options))).component;
}

/** Both engines run the module once while they are built; what it throws then is the author's to mend. */
async function evaluating(build) {
  try {
    return await build;
  } catch (error) {
    const words = String(error.message ?? error).replace(/^: /, "");
    throw new Complaint(`the entry module cannot be made a component:\n${words.trimEnd()}`);
  }
}
