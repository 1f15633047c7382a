// What TypeScript must take, and what it must refuse: checked by `tsc -p test`, never run.

import { activity, Failure, parseJson, s, type Infer } from "@deedbox/guest";
import { Answer, FakeContext } from "@deedbox/guest/testing";

const Line = s.object({ sku: s.string(), count: s.integer({ minimum: 1 }), note: s.string().nullable().optional() });
type Line = Infer<typeof Line>;
const line: Line = { sku: "a", count: 1 };
const noted: Line = { sku: "a", count: 1, note: null };
// @ts-expect-error a member is missing
const short: Line = { sku: "a" };

const Done = s.union(
  s.object({ outcome: s.literal("done"), lines: s.array(Line) }),
  s.object({ outcome: s.literal("none") }),
);

export const pack = activity({ name: "pack", summary: "Packs.", input: Line, output: Done }, (ctx, { sku, count }) => {
  const text: string = sku;
  // @ts-expect-error a number is no string
  const wrong: string = count;
  if (count > 3) return { outcome: "none" };
  return { outcome: "done", lines: [{ sku: text + wrong, count }] };
});

export const listed = activity({ name: "listed", output: s.array(s.string()) }, () => ["a", "b"]);

// @ts-expect-error the output has another shape
activity({ name: "bad", output: Done }, () => ({ outcome: "other" }));

// @ts-expect-error the option is misspelt
activity({ name: "bad" }, (ctx) => void ctx.http.post("https://a.example", { efect: "charge" }));

export const later = activity({ name: "later", output: s.integer() }, async () => 1);

export const loose = activity({ name: "loose", input: { type: "object" } }, (_, input) => {
  // @ts-expect-error a plain JSON Schema says nothing to TypeScript
  input.name;
  throw Failure.retryable("later", "not now", { retryAfterMs: 5 });
});

const fake = FakeContext.forRun("0190b1c2-0000-7000-8000-000000000001");
fake.answer(Answer.json({ id: "x" }));
const packed: Infer<typeof Done> = pack(fake, line);
const text: string = fake.runJson(pack, "{}");
const promised: Promise<string> = fake.runJson(later, "null");
const strings: string[] = [...listed(fake, undefined)];
const state: Line | undefined = fake.checkpoint.load(Line);
const id: string = parseJson("{}", s.object({ id: s.string() })).id;
export const used = [noted, short, packed, text, promised, strings, state, id];
