// The small ones: what is given back, how an attempt ends, what it writes to its log.

import { activity, Failure, s } from "@deedbox/guest";

const Echoed = s.object({
  a: s.integer(),
  b: s.string(),
  c: s.boolean().nullable().optional(),
  nested: s.object({ list: s.array(s.string()) }).optional(),
});

export const echo = activity(
  { name: "echo", summary: "Gives its input back.", input: Echoed, output: Echoed },
  (_, input) => input,
);

export const keys = activity(
  {
    name: "keys",
    summary: "Shows the keys of its run.",
    input: s.object({ names: s.array(s.string()) }),
    output: s.object({ run: s.string(), subkeys: s.record(s.string()) }),
  },
  (ctx, { names }) => ({
    run: ctx.idempotencyKey(),
    subkeys: Object.fromEntries(names.map((name) => [name, ctx.subkey(name)])),
  }),
);

export const fail = activity(
  {
    name: "fail",
    summary: "Fails as it is told.",
    input: s.object({
      code: s.string(),
      message: s.string(),
      kind: s.literal("retryable", "permanent"),
      retry_after_ms: s.integer({ minimum: 0 }).nullable().optional(),
      details: s.unknown().optional(),
    }),
  },
  (_, { code, message, kind, retry_after_ms, details }) => {
    throw Failure[kind](code, message, { retryAfterMs: retry_after_ms ?? undefined, details });
  },
);

export const panic = activity(
  { name: "panic", summary: "Ends by an error that nobody catches.", input: s.object({ words: s.string() }) },
  (_, { words }) => {
    throw new Error(words);
  },
);

export const spend = activity(
  {
    name: "spend",
    summary: "Uses something without end.",
    input: s.object({ kind: s.literal("loop", "memory", "stack") }),
  },
  (_, { kind }) => {
    switch (kind) {
      case "loop":
        for (;;);
      case "memory":
        return allocate();
      case "stack":
        return deeper(0);
    }
  },
);

function allocate(): never {
  const kept: Uint8Array[] = [];
  for (;;) kept.push(new Uint8Array(1 << 20).fill(1));
}

function deeper(depth: number): number {
  return deeper(depth + 1) + 1;
}

export const publish = activity(
  {
    name: "publish",
    summary: "Publishes a message.",
    input: s.object({ subject: s.string(), text: s.string() }),
    output: s.object({ stream: s.string(), sequence: s.integer() }),
  },
  (ctx, { subject, text }) => {
    const { stream, sequence } = ctx.messages.publish(subject, { effect: "note", payload: text });
    return { stream, sequence };
  },
);

export const log = activity(
  { name: "log", summary: "Writes to its log.", input: s.object({ words: s.string() }) },
  (_, { words }) => {
    console.debug(words);
    console.info(words);
    console.warn(words);
    console.error(words);
    console.log(words);
  },
);
