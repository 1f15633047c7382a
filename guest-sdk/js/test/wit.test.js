// The build has a copy of the host's interface, so that a project needs nothing but the SDK.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");

test("the copy of the interface is the interface: copy wit/activity.wit after a change", () => {
  assert.equal(read("../build/wit/deps/activity/activity.wit"), read("../../../wit/activity.wit"));
});
