/* Charges an order exactly once, however often the activity is run again. It must never look at the number of the attempt,
 * nor remember by itself what it did. */

#include "samples.h"

struct order {
    const char *provider_url;
    const char *order;
    int64_t amount_cents;
    const char *customer;
};
DEEDBOX_TYPE(order_type, struct order,
             DEEDBOX_FIELD(struct order, provider_url),
             DEEDBOX_FIELD(struct order, order),
             DEEDBOX_FIELD(struct order, amount_cents),
             DEEDBOX_FIELD(struct order, customer))

struct charge {
    int64_t amount_cents;
    const char *customer;
    const char *order;
};
DEEDBOX_TYPE(charge_type, struct charge,
             DEEDBOX_FIELD(struct charge, amount_cents),
             DEEDBOX_FIELD(struct charge, customer),
             DEEDBOX_FIELD(struct charge, order))

struct outcome {
    const char *outcome;
    const char *charge_id;
    const uint16_t *status;
    const deedbox_json *reason;
};
DEEDBOX_TYPE(outcome_type, struct outcome,
             DEEDBOX_FIELD(struct outcome, outcome),
             DEEDBOX_OPTIONAL(struct outcome, charge_id),
             DEEDBOX_OPTIONAL(struct outcome, status),
             DEEDBOX_OPTIONAL(struct outcome, reason))

/* These say nothing about the order. */
static bool asks_to_try_again(uint16_t status)
{
    return status == 401 || status == 407 || status == 408 || status == 425 || status == 429;
}

static deedbox_result charge_once(deedbox_context *ctx, const struct order *order, struct outcome *outcome)
{
    struct charge charge = {order->amount_cents, order->customer, order->order};
    const char *url = deedbox_format(ctx, "%s/v1/charges", order->provider_url);
    const deedbox_response *answer;
    DEEDBOX_TRY(post(ctx, url, "charge", deedbox_encode(ctx, &charge_type, &charge), &answer));
    if (answer->status >= 400 && answer->status < 500 && !asks_to_try_again(answer->status)) {
        outcome->outcome = "rejected";
        outcome->status = &answer->status;
        return reason_of(answer, &outcome->reason);
    }
    struct created created;
    DEEDBOX_TRY(deedbox_error_for_status(answer));
    DEEDBOX_TRY(deedbox_response_read(answer, &created_type, &created));
    outcome->outcome = "charged";
    outcome->charge_id = created.id;
    return DEEDBOX_OK;
}
DEEDBOX_ACTIVITY(charge_once, "charge-once", "Charges a customer for an order, exactly once.", order_type, outcome_type)
