/* Asks for a payment, and waits until somebody has paid. A long wait uses no worker and spends no retry. */

#include "samples.h"

struct order {
    const char *provider_url;
    const char *order;
    const uint64_t *wait_ms;
};
DEEDBOX_TYPE(order_type, struct order,
             DEEDBOX_FIELD(struct order, provider_url),
             DEEDBOX_FIELD(struct order, order),
             DEEDBOX_OPTIONAL(struct order, wait_ms))

struct payment {
    const char *order;
    const char *reference;
};
DEEDBOX_TYPE(payment_type, struct payment, DEEDBOX_FIELD(struct payment, order), DEEDBOX_FIELD(struct payment, reference))

struct paid {
    const char *by;
};
DEEDBOX_TYPE(paid_type, struct paid, DEEDBOX_FIELD(struct paid, by))

struct outcome {
    const char *outcome;
    const char *payment_id;
    const char *by;
};
DEEDBOX_TYPE(outcome_type, struct outcome,
             DEEDBOX_FIELD(struct outcome, outcome),
             DEEDBOX_OPTIONAL(struct outcome, payment_id),
             DEEDBOX_OPTIONAL(struct outcome, by))

static deedbox_result wait(deedbox_context *ctx, const uint64_t *wait_ms, const deedbox_signal **signal)
{
    if (wait_ms == NULL) {
        return deedbox_wait_signal(ctx, "paid", signal);
    }
    return deedbox_wait_signal_for(ctx, "paid", *wait_ms, signal);
}

static deedbox_result wait_for_webhook(deedbox_context *ctx, const struct order *order, struct outcome *outcome)
{
    struct payment payment = {order->order, deedbox_idempotency_key(ctx)};
    const char *url = deedbox_format(ctx, "%s/v1/payments", order->provider_url);
    const deedbox_response *answer;
    const deedbox_signal *signal;
    struct created created;
    struct paid paid;
    DEEDBOX_TRY(post_or_fail(ctx, url, "request-payment", deedbox_encode(ctx, &payment_type, &payment), &answer));
    DEEDBOX_TRY(deedbox_response_read(answer, &created_type, &created));
    DEEDBOX_TRY(wait(ctx, order->wait_ms, &signal));
    if (signal == NULL) {
        outcome->outcome = "expired";
        return DEEDBOX_OK;
    }
    DEEDBOX_TRY(deedbox_signal_read(signal, &paid_type, &paid));
    *outcome = (struct outcome){"paid", created.id, paid.by};
    return DEEDBOX_OK;
}
DEEDBOX_ACTIVITY(wait_for_webhook, "wait-for-webhook", "Asks for a payment and waits until it is there.", order_type,
                 outcome_type)
