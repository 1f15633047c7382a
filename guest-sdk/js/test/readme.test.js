// The examples of the README are code that runs.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { Answer, FakeContext } from "@deedbox/guest/testing";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const README = readFileSync(path.join(HERE, "../README.md"), "utf8");
const EXAMPLES = [...README.matchAll(/^```js\n(.*?)^```/gmsu)].map(([, code]) => code);

// In the folder of the package, so that its own name leads to it.
const folder = mkdtempSync(path.join(HERE, "readme-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

function load(i) {
  const file = path.join(folder, `example${i}.mjs`);
  writeFileSync(file, EXAMPLES[i]);
  return import(pathToFileURL(file));
}

const fakeContext = () => FakeContext.forRun("0190b1c2-0000-7000-8000-000000000001");

test("there is an example for each part", () => {
  assert.equal(EXAMPLES.length, 4);
});

test("the first example charges an order", async () => {
  const { chargeOnce } = await load(0);
  const ctx = fakeContext();
  ctx.answer(Answer.json({ id: "ch_1", more: true }));
  assert.equal(ctx.runJson(chargeOnce, '{"order":"42","amount_cents":1999}'), '{"id":"ch_1"}');
  assert.deepEqual(ctx.sent()[0].json(), { order: "42", amount_cents: 1999 });
});

test("the example of messages and files names both effects", async () => {
  const { announce } = await load(1);
  const ctx = fakeContext();
  assert.equal(ctx.runJson(announce, '{"order":"42"}'), "null");
  assert.deepEqual([ctx.sentMessages().length, ctx.writtenFiles()[0].path], [1, "exports/42.csv"]);
});

test("the example of a signal gives what it was told, or says that nobody did", async () => {
  const { approve } = await load(2);
  const told = fakeContext();
  told.deliver("approval", { outcome: "approved" });
  assert.equal(told.runJson(approve, '{"order":"42"}'), '{"outcome":"approved"}');
  assert.match(fakeContext().runJson(approve, '{"order":"42"}'), /nobody answered/u);
});

// Its own test runs with those here.
await load(3);
