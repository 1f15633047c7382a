// An effect, and then a wait for what its receiver says.

import { activity, s } from "@deedbox/guest";

const Paid = s.object({ outcome: s.literal("paid"), payment_id: s.string(), by: s.unknown() });
const Expired = s.object({ outcome: s.literal("expired") });

export const waitForWebhook = activity(
  {
    name: "wait-for-webhook",
    summary: "Asks for a payment and waits until it is made.",
    input: s.object({
      provider_url: s.string(),
      order: s.string(),
      wait_ms: s.integer({ minimum: 0 }).nullable().optional(),
    }),
    output: s.union(Paid, Expired),
  },
  (ctx, { provider_url, order, wait_ms }) => {
    const json = { order, reference: ctx.idempotencyKey() };
    const asked = ctx.http.post(`${provider_url}/v1/payments`, { effect: "request-payment", json }).errorForStatus();
    const payment_id = asked.json(s.object({ id: s.string() })).id;
    const paid = typeof wait_ms === "number" ? ctx.signals.waitFor("paid", wait_ms) : ctx.signals.wait("paid");
    if (paid === undefined) return { outcome: "expired" };
    return { outcome: "paid", payment_id, by: paid.json(s.object({ by: s.unknown() })).by };
  },
);
