/* A business rejection is a value, not a failure: it spends no retry. Two runs for one order share the effect. */

#include "samples.h"

struct order {
    const char *provider_url;
    const char *order;
};
DEEDBOX_TYPE(order_type, struct order, DEEDBOX_FIELD(struct order, provider_url), DEEDBOX_FIELD(struct order, order))

struct outcome {
    const char *outcome;
    const char *order_id;
    const deedbox_json *reason;
};
DEEDBOX_TYPE(outcome_type, struct outcome,
             DEEDBOX_FIELD(struct outcome, outcome),
             DEEDBOX_OPTIONAL(struct outcome, order_id),
             DEEDBOX_OPTIONAL(struct outcome, reason))

static deedbox_result reject_as_data(deedbox_context *ctx, const struct order *order, struct outcome *outcome)
{
    deedbox_json *body = deedbox_json_object(ctx);
    deedbox_json_set(ctx, body, "order", deedbox_json_string(ctx, order->order));
    const deedbox_response *answer;
    DEEDBOX_TRY(deedbox_send(ctx, &(deedbox_request){
        .method = "POST",
        .url = deedbox_format(ctx, "%s/v1/orders", order->provider_url),
        .identity = DEEDBOX_BUSINESS("place-order", order->order),
        .json = body,
    }, &answer));
    if (answer->status == 409 || answer->status == 422) {
        outcome->outcome = "rejected";
        return reason_of(answer, &outcome->reason);
    }
    struct created created;
    DEEDBOX_TRY(deedbox_error_for_status(answer));
    DEEDBOX_TRY(deedbox_response_read(answer, &created_type, &created));
    *outcome = (struct outcome){"placed", created.id, NULL};
    return DEEDBOX_OK;
}
DEEDBOX_ACTIVITY(reject_as_data, "reject-as-data", "Places an order; a refusal is an answer too.", order_type, outcome_type)
