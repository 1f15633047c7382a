// One module out of the author's modules, what they import, and the engine's part of this SDK.

import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { Complaint, tool } from "./tools.mjs";

const SDK = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { name: NAME, exports: EXPORTS } = JSON.parse(readFileSync(path.join(SDK, "package.json"), "utf8"));
const NODE = /^node:/;

/** The source text of the component. */
export async function bundle({ project, entry, engine }) {
  const esbuild = await tool("esbuild", project);
  const contents = [
    `import { component } from "${NAME}/engine/${engine}";`,
    `import * as exports from ${JSON.stringify(entry)};`,
    "export const activities = component(exports);",
  ];
  try {
    const { outputFiles } = await esbuild.build({
      stdin: { contents: contents.join("\n"), resolveDir: project, sourcefile: "component.js" },
      absWorkingDir: project,
      bundle: true,
      write: false,
      format: "esm",
      target: "es2022",
      platform: "neutral",
      mainFields: ["module", "main"],
      conditions: ["import", "default"],
      external: ["deedbox:*", "wasi:*"],
      keepNames: true,
      logLevel: "silent",
      plugins: [thisSdk, noNode],
    });
    return outputFiles[0].text;
  } catch (error) {
    if (!Array.isArray(error.errors)) throw error;
    const messages = await esbuild.formatMessages(error.errors, { kind: "error" });
    throw new Complaint(messages.join("\n").trimEnd());
  }
}

/** The build and what is built are of one version, wherever the project has the package from. */
const thisSdk = {
  name: "this-sdk",
  setup(build) {
    build.onResolve({ filter: new RegExp(`^${NAME}(/|$)`) }, ({ path: wanted }) => {
      const found = EXPORTS[`.${wanted.slice(NAME.length)}`];
      const file = found?.default ?? found;
      if (typeof file !== "string") return { errors: [{ text: `${NAME} has no ${wanted}` }] };
      return { path: path.join(SDK, file) };
    });
  },
};

const noNode = {
  name: "no-node",
  setup(build) {
    build.onResolve({ filter: NODE }, ({ path: wanted }) => ({
      errors: [{ text: `${wanted} is a module of Node.js, and there is no Node.js in a component` }],
    }));
  },
};
