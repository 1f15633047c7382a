// An effect of the business: two runs for one order share it. A refusal is a value, so that it spends no retry.

import { activity, s } from "@deedbox/guest";
import { bodyOf } from "./body.js";

const Placed = s.object({ outcome: s.literal("placed"), order_id: s.string() });
const Rejected = s.object({ outcome: s.literal("rejected"), reason: s.unknown() });

export const rejectAsData = activity(
  {
    name: "reject-as-data",
    summary: "Places an order; a refusal is a value.",
    input: s.object({ provider_url: s.string(), order: s.string() }),
    output: s.union(Placed, Rejected),
  },
  (ctx, { provider_url, order }) => {
    const business = { operation: "place-order", key: order };
    const answer = ctx.http.post(`${provider_url}/v1/orders`, { business, json: { order } });
    if ([409, 422].includes(answer.status)) return { outcome: "rejected", reason: bodyOf(answer) };
    return { outcome: "placed", order_id: answer.errorForStatus().json(s.object({ id: s.string() })).id };
  },
);
