// One effect: the charge of an order. A refusal by the provider is a value.

import { activity, s } from "@deedbox/guest";
import { bodyOf } from "./body.js";

const Order = s.object({
  provider_url: s.string(),
  order: s.string(),
  amount_cents: s.integer(),
  customer: s.string(),
});
const Charged = s.object({ outcome: s.literal("charged"), charge_id: s.string() });
const Rejected = s.object({ outcome: s.literal("rejected"), status: s.integer(), reason: s.unknown() });
const Charge = s.object({ id: s.string() });

export const chargeOnce = activity(
  { name: "charge-once", summary: "Charges an order, exactly once.", input: Order, output: s.union(Charged, Rejected) },
  (ctx, { provider_url, ...body }) => {
    const answer = ctx.http.post(`${provider_url}/v1/charges`, { effect: "charge", json: body });
    if (answer.ok) return { outcome: "charged", charge_id: answer.json(Charge).id };
    if (isFailure(answer.status)) answer.errorForStatus();
    return { outcome: "rejected", status: answer.status, reason: bodyOf(answer) };
  },
);

/** These say nothing about the order: the charge was not looked at. */
function isFailure(status: number): boolean {
  return status >= 500 || [401, 407, 408, 425, 429].includes(status);
}
