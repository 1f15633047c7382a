// Each way out of an activity, with what it asks of the host and what it makes of the host's refusals.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HttpError, s } from "@deedbox/guest";
import { Answer, FakeContext } from "@deedbox/guest/testing";

import { decode } from "../src/utf8.js";

const URL_OF = "https://api.example.com/v1/charges";

function contextWith(...answers) {
  const ctx = FakeContext.forRun("0190b1c2-0000-7000-8000-000000000001");
  answers.forEach((answer) => ctx.answer(answer));
  return ctx;
}

function sentWith(options) {
  const ctx = contextWith(Answer.status(200));
  ctx.http.post(URL_OF, options);
  return ctx.sent()[0];
}

test("an effect is known by its place, its name, or the business", () => {
  assert.deepEqual(sentWith().identity, { tag: "positional" });
  assert.deepEqual(sentWith({ effect: "charge" }).identity, { tag: "named", val: "charge" });
  const business = { operation: "charge", key: "order-42" };
  assert.deepEqual(sentWith({ business, onUnknown: "ask" }).identity, { tag: "business", val: business });
  assert.equal(sentWith({ onUnknown: "at-most-once" }).onUnknown, "at-most-once");
  assert.equal(sentWith().onUnknown, "provider-default");
});

test("a body is JSON, a form, or bytes, with the type that goes with it", () => {
  const json = sentWith({ json: { a: "é" } });
  assert.deepEqual([json.header("Content-Type"), json.json()], ["application/json", { a: "é" }]);
  const form = sentWith({
    form: [
      ["b", "x y&z"],
      ["ä", "100%"],
      ["n", 7],
      ["q", "(it's~*)!"],
    ],
  });
  assert.equal(form.header("content-type"), "application/x-www-form-urlencoded");
  assert.equal(decode(form.body), "b=x+y%26z&%C3%A4=100%25&n=7&q=%28it%27s%7E*%29%21");
  const own = sentWith({ headers: { "Content-Type": "text/csv", "x-many": ["1", "2"] }, body: "a,b" });
  assert.deepEqual(
    own.headers.map(([name, value]) => [name, decode(value)]),
    [
      ["Content-Type", "text/csv"],
      ["x-many", "1"],
      ["x-many", "2"],
    ],
  );
});

/** F-J07. */
test("a time-out is passed on in whole milliseconds, and no more than the host can be told", () => {
  assert.equal(sentWith({ timeoutMs: 2000 }).timeoutMs, 2000);
  assert.equal(sentWith({ timeoutMs: 0.2 }).timeoutMs, 1);
  assert.equal(sentWith({ timeoutMs: 1e15 }).timeoutMs, 0xffffffff);
  assert.equal(sentWith().timeoutMs, undefined);
  for (const timeoutMs of [-1, NaN, "2s"]) {
    assert.throws(() => sentWith({ timeoutMs }), { code: "invalid-request", message: /no time in milliseconds/u });
  }
});

test("what is misspelt or said twice is not sent", () => {
  const wrong = [
    [{ efect: "charge" }, /option efect is not known/u],
    [{ effect: "a", business: { operation: "a", key: "b" } }, /name it once/u],
    [{ business: { operation: "a" } }, /\{ operation, key \}/u],
    [{ json: 1, body: "x" }, /say it once/u],
    [{ json: () => {} }, /the body is not JSON/u],
    [{ body: 7 }, /give a string or a Uint8Array/u],
    [{ onUnknown: "never" }, /`onUnknown` is one of/u],
    [{ lookup: { url: URL_OF, found: {}, absent: { statuses: [404] } } }, /lookup\.found: say its statuses/u],
    [
      { lookup: { url: URL_OF, found: { statuses: [200], equals: "x" }, absent: { statuses: [404] } } },
      /needs the `pointer`/u,
    ],
  ];
  for (const [options, message] of wrong) {
    const ctx = contextWith(Answer.status(200));
    assert.throws(() => ctx.http.post(URL_OF, options), { code: "invalid-request", kind: "permanent", message });
    assert.deepEqual(ctx.sent(), []);
  }
});

test("a look-up says all that the host needs to ask by itself", () => {
  const lookup = {
    url: `${URL_OF}?order=42`,
    headers: { accept: "application/json" },
    found: { statuses: [200], pointer: "/data/*/id" },
    absent: { statuses: [404] },
    settleMs: 1500,
  };
  const { lookup: said } = sentWith({ lookup });
  assert.deepEqual([said.request.method, said.request.url, said.settleMs], ["GET", lookup.url, 1500]);
  assert.deepEqual(said.found, { statuses: [200], pointer: "/data/*/id", equals: undefined });
});

test("every status is an answer, and as an error each has its kind", () => {
  const kinds = {
    400: "permanent",
    404: "permanent",
    408: "retryable",
    425: "retryable",
    429: "retryable",
    500: "retryable",
    503: "retryable",
  };
  for (const [status, kind] of Object.entries(kinds)) {
    const answer = contextWith(Answer.status(Number(status))).http.get(URL_OF);
    assert.equal(answer.ok, false);
    assert.throws(() => answer.errorForStatus(), {
      code: "http-status",
      kind,
      status: Number(status),
      details: { status: Number(status) },
    });
  }
  const fine = contextWith(Answer.status(302)).http.get(URL_OF);
  assert.equal(fine.errorForStatus(), fine);
});

test("the host's refusals are errors with their code and kind", () => {
  const retryable = ["in-flight", "unreachable", "timed-out", "connection-lost"];
  const permanent = ["denied", "effect-mismatch", "outcome-unknown", "response-too-large", "invalid-request"];
  for (const [codes, kind] of [
    [retryable, "retryable"],
    [permanent, "permanent"],
  ]) {
    for (const code of codes) {
      const ctx = contextWith(Answer.error(code, "words"));
      assert.throws(
        () => ctx.http.post(URL_OF),
        (error) => error instanceof HttpError && error.code === code && error.kind === kind,
      );
    }
  }
});

test("an answer is read as asked, or the error says what it is", () => {
  const answers = [
    Answer.json({ id: "a", more: 1 }),
    Answer.status(200).withBody("no"),
    Answer.json({ id: "a" }).withoutBody(),
  ];
  const ctx = contextWith(
    ...answers,
    Answer.status(200).withBody(Uint8Array.of(0xff)),
    Answer.json({ id: 7 }).replayed(),
  );
  const Id = s.object({ id: s.string() });
  assert.deepEqual(ctx.http.get(URL_OF).json(Id), { id: "a" });
  assert.throws(() => ctx.http.get(URL_OF).json(), { code: "unexpected-body", kind: "permanent" });
  assert.throws(() => ctx.http.get(URL_OF).text(), { code: "body-not-kept", kind: "permanent" });
  assert.throws(() => ctx.http.get(URL_OF).text(), { code: "unexpected-body" });
  const replayed = ctx.http.get(URL_OF);
  assert.throws(() => replayed.json(Id), { code: "unexpected-body", message: /body\.id: expected a string/u });
  assert.deepEqual(
    [replayed.source, replayed.header("Content-Type"), replayed.header("x")],
    ["replayed", "application/json", undefined],
  );
  assert.throws(() => ctx.http.get(URL_OF), /no answer for GET https:/u);
});

test("messages and files name their effects, and their refusals have their codes", () => {
  const ctx = contextWith();
  const published = ctx.messages.publish("orders.paid", { effect: "note", json: { a: 1 } });
  assert.deepEqual([published.stream, published.sequence], ["TEST", 1]);
  const [message] = ctx.sentMessages();
  assert.deepEqual(
    [message.json(), message.identity.val, message.headers],
    [{ a: 1 }, "note", [["Content-Type", "application/json"]]],
  );
  ctx.refuseMessage("message-refused", "full");
  assert.throws(() => ctx.messages.publish("a", { payload: "x" }), { code: "message-refused", kind: "retryable" });
  ctx.files.write("exports/a.csv", "a,b\n", { business: { operation: "export", key: "day" } });
  assert.deepEqual([ctx.writtenFiles()[0].text(), ctx.writtenFiles()[0].identity.tag], ["a,b\n", "business"]);
  ctx.refuseWrite("write-failed");
  assert.throws(() => ctx.files.write("exports/a.csv", "a"), { code: "write-failed", kind: "retryable" });
  assert.throws(() => ctx.files.append("exports/a.csv", "a"), { code: "denied", message: /writes twice/u });
});

test("a signal that was given is given again in the next attempt", () => {
  const ctx = contextWith();
  ctx.deliver("paid", { by: "card" });
  for (const attempt of [1, 2]) {
    ctx.setAttempt(attempt);
    assert.equal(ctx.signals.poll("other"), undefined);
    assert.deepEqual(ctx.signals.wait("paid").json(s.object({ by: s.string() })), { by: "card" });
    assert.equal(ctx.signals.waitFor("paid", 1000), undefined);
  }
  assert.throws(() => ctx.signals.poll("a b"), { code: "signal-invalid-name" });
  assert.throws(() => ctx.signals.wait("paid"), /deliver it/u);
  ctx.deliver("next", 7);
  assert.throws(() => ctx.signals.wait("next").json(s.string()), { code: "signal-format", kind: "permanent" });
});

test("a state is there in the next attempt, and one that is too large is refused", () => {
  const ctx = contextWith();
  assert.equal(ctx.checkpoint.load(), undefined);
  ctx.checkpoint.save({ done: 3 });
  ctx.setAttempt(2);
  assert.deepEqual(ctx.checkpoint.load(s.object({ done: s.integer() })), { done: 3 });
  assert.throws(() => ctx.checkpoint.load(s.string()), { code: "checkpoint-format" });
  assert.throws(() => ctx.checkpoint.save("x".repeat(65536)), { code: "checkpoint-too-large", kind: "permanent" });
});

test("a run is known, and an attempt can be asked to stop", () => {
  const ctx = contextWith();
  ctx.setAttempt(2);
  ctx.setActivity("charge-once");
  const { attempt, maxAttempts, activity, tenant, remainingMs } = ctx.run();
  assert.deepEqual([attempt, maxAttempts, activity, tenant, remainingMs], [2, 3, "charge-once", "test", 60_000]);
  assert.equal(ctx.cancelled(), false);
  ctx.cancel();
  assert.equal(ctx.cancelled(), true);
});
