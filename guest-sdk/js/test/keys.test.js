// The keys that a test context shows are those that a host derives: both are held to the same vectors.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { FakeContext } from "@deedbox/guest/testing";

const VECTORS = JSON.parse(readFileSync(new URL("../../key-vectors.json", import.meta.url), "utf8"));

/** The entries of the test contexts' tenant. */
function cases(kind) {
  const found = VECTORS[kind].filter(({ tenant }) => tenant === "test");
  assert.ok(found.length >= 3, `${kind}: too few vectors to check anything`);
  return found;
}

test("run keys are those of the vectors in every attempt", () => {
  for (const { run_id, text } of cases("run_keys")) {
    const fake = FakeContext.forRun(run_id);
    for (const attempt of [1, 2, 3]) {
      fake.setAttempt(attempt);
      assert.equal(fake.idempotencyKey(), text);
    }
  }
});

test("subkeys are those of the vectors in every attempt", () => {
  for (const { run_id, name, text } of cases("subkeys")) {
    const fake = FakeContext.forRun(run_id);
    for (const attempt of [1, 2, 3]) {
      fake.setAttempt(attempt);
      assert.equal(fake.subkey(name), text, JSON.stringify(name));
    }
  }
});

test("names that the vectors refuse are errors", () => {
  const fake = FakeContext.forRun("00000000-0000-0000-0000-000000000000");
  assert.ok(VECTORS.refused_names.length > 0);
  for (const length of VECTORS.refused_names) {
    assert.throws(
      () => fake.subkey("a".repeat(length)),
      { code: "invalid-name", kind: "permanent" },
      `${length} bytes`,
    );
  }
});

test("there is no context without a run id", () => {
  for (const id of [undefined, "", "run-1", "0197F3A4-5B6C-7D8E-9F01-23456789ABCD", 7]) {
    assert.throws(() => FakeContext.forRun(id), /write a .*UUID into the test/u);
  }
});
