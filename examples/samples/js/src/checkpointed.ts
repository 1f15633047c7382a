// Effects in a row, with a note of how far they got.

import { activity, s } from "@deedbox/guest";

const Progress = s.object({ done: s.integer() });

export const checkpointed = activity(
  {
    name: "checkpointed",
    summary: "Makes steps and notes each.",
    input: s.object({ steps: s.integer({ minimum: 0 }), provider_url: s.string() }),
    output: s.object({ done: s.integer(), began_at: s.integer() }),
  },
  (ctx, { steps, provider_url }) => {
    const began_at = ctx.checkpoint.load(Progress)?.done ?? 0;
    for (let step = began_at + 1; step <= steps; step += 1) {
      ctx.http.post(`${provider_url}/v1/steps`, { effect: `step-${step}`, json: { step } }).errorForStatus();
      ctx.checkpoint.save({ done: step });
    }
    return { done: steps, began_at };
  },
);
