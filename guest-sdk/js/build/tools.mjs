// Finding the tools that a build needs. Nothing is run here, and nothing installed.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

/** What went wrong, in words for the author. */
export class Complaint extends Error {}

// In the versions that this SDK was tried with. The last one does not name all that it imports.
const INSTALL = {
  "esbuild": "esbuild@0.28.2",
  "componentize-qjs": "componentize-qjs@0.4.5",
  "@bytecodealliance/componentize-js":
    "@bytecodealliance/componentize-js@0.23.0 @bytecodealliance/preview2-shim@0.25.0",
};

/** The module of a tool: from the folders of DEEDBOX_TOOLS, else from the project's node_modules. */
export async function tool(name, project) {
  const listed = (process.env.DEEDBOX_TOOLS ?? "").split(path.delimiter).filter((folder) => folder !== "");
  for (const folder of [...listed, project]) {
    const found = entryOf(name, path.resolve(folder));
    if (found !== undefined) return load(name, found, project);
  }
  throw missing(name, `it is not installed in ${project}`);
}

async function load(name, file, project) {
  try {
    return await import(pathToFileURL(file));
  } catch (error) {
    if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw missing(name, `what is installed of it for ${project} is not whole (${error.message})`);
  }
}

function missing(name, why) {
  return new Complaint(
    `the build needs ${name}, and ${why}. Install it there:\n  npm install --save-dev ${INSTALL[name]}`,
  );
}

/** The module that a package of that name offers, as Node finds packages: in the folder or in one above it. */
function entryOf(name, folder) {
  const home = path.join(folder, "node_modules", name);
  const file = path.join(home, "package.json");
  if (existsSync(file)) {
    const { exports, main } = JSON.parse(readFileSync(file, "utf8"));
    return path.join(home, exports?.import ?? main ?? "index.js");
  }
  const above = path.dirname(folder);
  return above === folder ? undefined : entryOf(name, above);
}
