// Builds a project's component: bundles its entry module with this SDK, and puts the bundle into an engine.
//
//   node build.mjs --project DIR --out FILE.wasm
//
// `deedbox build` runs it. Tools come from the project's node_modules, else from the folders in DEEDBOX_TOOLS; nothing is
// installed here. It ends with 1 and words on standard error when something is missing or wrong.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";

import { bundle } from "./bundle.mjs";
import { ENGINES } from "./engines.mjs";
import { Complaint } from "./tools.mjs";

const ENTRIES = ["src/index.ts", "src/index.js", "index.ts", "index.js"];
const SETTINGS = ["engine", "entry"];

async function main() {
  const options = { project: { type: "string", default: "." }, out: { type: "string", default: "activity.wasm" } };
  const { values } = parseArgs({ options });
  const project = path.resolve(values.project);
  const { engine, entry } = settingsOf(project);
  const source = await bundle({ project, entry, engine });
  const component = await ENGINES[engine]({ project, source });
  mkdirSync(path.dirname(path.resolve(values.out)), { recursive: true });
  writeFileSync(values.out, component);
}

/** The engine and the entry module, from `"deedbox"` in package.json. */
function settingsOf(project) {
  const file = path.join(project, "package.json");
  const settings = JSON.parse(readFileSync(file, "utf8")).deedbox ?? {};
  const strange = Object.keys(settings).find((name) => !SETTINGS.includes(name));
  if (strange !== undefined) {
    throw new Complaint(`${file}: "deedbox" has no setting ${strange}; it has ${SETTINGS.join(" and ")}`);
  }
  const engine = settings.engine ?? "quickjs";
  if (!Object.hasOwn(ENGINES, engine)) {
    throw new Complaint(`${file}: there is no engine ${engine}; there are ${Object.keys(ENGINES).join(" and ")}`);
  }
  return { engine, entry: entryOf(project, file, settings.entry) };
}

function entryOf(project, file, named) {
  const candidates = named === undefined ? ENTRIES : [named];
  const found = candidates.map((name) => path.join(project, name)).find((it) => existsSync(it));
  if (found !== undefined) return found;
  throw new Complaint(
    `there is no ${candidates.join(", ")} in ${project}: the entry module exports the activities; name another one in ` +
      `${file}, as "deedbox": { "entry": "…" }`,
  );
}

main().catch((error) => {
  console.error(error instanceof Complaint ? error.message : error);
  process.exitCode = 1;
});
