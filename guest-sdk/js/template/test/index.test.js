import assert from "node:assert/strict";
import { test } from "node:test";

import { Answer, FakeContext } from "@deedbox/guest/testing";

import { chargeOnce } from "../src/index.js";

const RUN_ID = "0190b1c2-0000-7000-8000-000000000001";

test("an order is charged", () => {
  const ctx = FakeContext.forRun(RUN_ID);
  ctx.answer(Answer.json({ id: "ch_1" }));
  const input = { order: "42", amount_cents: 1999, provider_url: "https://api.example.com" };
  assert.deepEqual(chargeOnce(ctx, input), { id: "ch_1" });
  const [charge] = ctx.sent();
  assert.equal(charge.url, "https://api.example.com/v1/charges");
  assert.deepEqual(charge.json(), { order: "42", amount_cents: 1999 });
  assert.deepEqual(charge.identity, { tag: "named", val: "charge" });
});

test("an input that does not fit is told where", () => {
  const ctx = FakeContext.forRun(RUN_ID);
  const input = '{"order":"42","amount_cents":"much","provider_url":"https://api.example.com"}';
  assert.throws(() => ctx.runJson(chargeOnce, input), { code: "invalid-input", message: /^input\.amount_cents: / });
  assert.deepEqual(ctx.sent(), []);
});
