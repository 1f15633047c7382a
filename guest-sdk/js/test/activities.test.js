// Activities as a test runs them: what is read, sent, and given back, and what goes wrong in words.

import assert from "node:assert/strict";
import { test } from "node:test";

import { activity, Failure, HttpError, parseJson, s } from "@deedbox/guest";
import { Answer, FakeContext } from "@deedbox/guest/testing";

import { declaredIn, descriptorOf, declarationOf } from "../src/activity.js";

const RUN_ID = "0190b1c2-0000-7000-8000-000000000001";
const fakeContext = () => FakeContext.forRun(RUN_ID);

const Line = s.object({ sku: s.string(), amount: s.integer({ minimum: 1 }) });
const Basket = s.object({
  lines: s.array(Line),
  note: s.string().nullable().optional(),
  extra: s.record(s.number()).optional(),
});
const count = activity(
  { name: "count", summary: "Counts.", input: Basket, output: s.object({ lines: s.integer() }) },
  (_, basket) => ({
    lines: basket.lines.length,
    unnamed: "left out",
  }),
);

/** F-J04. */
test("an input that does not fit names the place, whatever it is", () => {
  const cases = [
    [
      '{"lines":[{"sku":"a","amount":1},{"sku":"b","amount":"x"}]}',
      "input.lines[1].amount: expected a whole number, got a string",
    ],
    ['{"lines":[{"sku":"a"}]}', "input.lines[0].amount: missing"],
    ['{"lines":[{"sku":"a","amount":0}]}', "input.lines[0].amount: is 0, at least 1 is wanted"],
    ['{"lines":[],"nite":"x"}', "input.nite: unknown member; known are lines, note, extra"],
    ['{"lines":[],"__proto__":{}}', "input.__proto__: unknown member; known are lines, note, extra"],
    ['{"lines":[],"toString":1}', "input.toString: unknown member; known are lines, note, extra"],
    ['{"lines":[],"extra":{"a b":"x"}}', 'input.extra["a b"]: expected a number, got a string'],
    ['{"lines":[],"note":7}', "input.note: expected a string, got a whole number"],
    [
      '{"lines":[{"sku":"a","amount":9007199254740993}]}',
      "input.lines[0].amount: is beyond 2^53 - 1: send it as a string",
    ],
    ["[]", "input: expected an object, got an array"],
    ["null", "input: expected an object, got null"],
  ];
  for (const [input, message] of cases) {
    assert.throws(
      () => fakeContext().runJson(count, input),
      { code: "invalid-input", kind: "permanent", message },
      input,
    );
  }
  assert.throws(() => fakeContext().runJson(count, "{"), { code: "invalid-input", message: /^input: not JSON: / });
});

test("members come in any order, absent ones may be absent, and the output has what its schema names", () => {
  for (const input of ['{"note":null,"lines":[]}', '{"lines":[]}', '{"extra":{"a":1.5},"lines":[],"note":"x"}']) {
    assert.equal(fakeContext().runJson(count, input), '{"lines":0}');
  }
});

test("an output that is not what was said is a failure and no half output", () => {
  const wrong = activity({ name: "wrong", output: s.object({ id: s.string() }) }, () => ({}));
  assert.throws(() => fakeContext().runJson(wrong, "null"), { code: "invalid-output", message: "output.id: missing" });
  const big = activity({ name: "big" }, () => ({ n: 1n }));
  assert.throws(() => fakeContext().runJson(big, "null"), { code: "invalid-output", kind: "permanent" });
  assert.equal(
    fakeContext().runJson(
      activity({ name: "nothing" }, () => {}),
      "7",
    ),
    "null",
  );
});

test("a module's activities are its exports, and two of one name are refused", () => {
  const other = activity({ name: "a-first" }, () => {});
  assert.deepEqual(
    [...declaredIn({ count, other, again: count, helper: () => {}, text: "x" }).keys()],
    ["a-first", "count"],
  );
  const twin = activity({ name: "count" }, () => {});
  assert.throws(() => declaredIn({ count, twin }), /two activities have the name count/u);
  assert.throws(() => declaredIn({ helper: () => {} }), /exports no activity/u);
  assert.throws(() => activity({ name: "a b" }, () => {}), /is no name/u);
  assert.throws(() => activity({ name: "a", outputs: 1 }, () => {}), /outputs is not known/u);
});

test("the host is shown JSON Schema, of this package, of a library, or as it stands", () => {
  const schema = JSON.parse(descriptorOf(declarationOf(count)).inputSchema);
  assert.deepEqual(schema.required, ["lines"]);
  assert.equal(schema.additionalProperties, false);
  assert.deepEqual(schema.properties.note, { anyOf: [{ type: "string" }, { type: "null" }] });
  assert.deepEqual(schema.properties.lines.items.properties.amount, { type: "integer", minimum: 1 });
  const plain = activity({ name: "plain", input: { type: "string" } }, (_, input) => input);
  assert.equal(descriptorOf(declarationOf(plain)).inputSchema, '{"type":"string"}');
  assert.equal(descriptorOf(declarationOf(plain)).outputSchema, undefined);
  assert.equal(fakeContext().runJson(plain, "7"), "7");
});

test("a Standard Schema is asked, and its issue names the place", () => {
  const validate = (value) =>
    typeof value?.id === "string"
      ? { value }
      : { issues: [{ message: "wants a text", path: ["lines", 2, { key: "id" }] }] };
  const jsonSchema = { input: () => ({ type: "object" }), output: () => ({}) };
  const standard = { "~standard": { version: 1, vendor: "test", validate, jsonSchema } };
  const named = activity({ name: "named", input: standard }, (_, { id }) => id);
  assert.equal(fakeContext().runJson(named, '{"id":"x"}'), '"x"');
  assert.throws(() => fakeContext().runJson(named, "{}"), {
    code: "invalid-input",
    message: "input.lines[2].id: wants a text",
  });
  assert.equal(descriptorOf(declarationOf(named)).inputSchema, '{"type":"object"}');
});

test("an async activity gives the promise of its output, and its failure stays one", async () => {
  const later = activity({ name: "later", output: s.integer() }, async (_, input) => {
    if (input === "no") throw Failure.retryable("not-now", "come back", { retryAfterMs: 5, details: { a: 1 } });
    return 7;
  });
  assert.equal(await fakeContext().runJson(later, "null"), "7");
  const wanted = { code: "not-now", kind: "retryable", retryAfterMs: 5, details: { a: 1 }, isRetryable: true };
  await assert.rejects(later(fakeContext(), "no"), wanted);
});

test("JSON that is none is the failure invalid-json", () => {
  assert.throws(() => parseJson("{"), { code: "invalid-json", kind: "permanent" });
  assert.throws(() => parseJson('{"id":1}', s.object({ id: s.string() })), {
    code: "invalid-json",
    message: /^json\.id: /,
  });
  assert.deepEqual(parseJson('{"id":"a","more":1}', s.object({ id: s.string() })), { id: "a" });
  assert.ok(new HttpError("timed-out") instanceof Failure);
});
