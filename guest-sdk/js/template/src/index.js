// The activities of {{name}}: each export that `activity` made is one. What they change outside they change through `ctx`,
// which makes it happen once however often an activity is run again.

import { activity, s } from "@deedbox/guest";

const Order = s.object({
  order: s.string(),
  amount_cents: s.integer({ minimum: 0 }),
  provider_url: s.string().describe("Where the provider answers, without a path."),
});
const Receipt = s.object({ id: s.string() });

export const chargeOnce = activity(
  { name: "charge-once", summary: "Charges an order, exactly once.", input: Order, output: Receipt },
  (ctx, { provider_url, ...order }) => {
    const charge = ctx.http.post(`${provider_url}/v1/charges`, { effect: "charge", json: order });
    return charge.errorForStatus().json(Receipt);
  },
);
