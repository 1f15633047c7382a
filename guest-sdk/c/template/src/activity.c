#include <deedbox.h>

struct order {
    const char *order;
    int64_t amount_cents;
    const char *provider_url;
};
DEEDBOX_TYPE(order_type, struct order,
             DEEDBOX_FIELD(struct order, order),
             DEEDBOX_FIELD(struct order, amount_cents),
             DEEDBOX_FIELD(struct order, provider_url))

/* What the provider is sent. */
struct charge {
    const char *order;
    int64_t amount_cents;
};
DEEDBOX_TYPE(charge_type, struct charge, DEEDBOX_FIELD(struct charge, order), DEEDBOX_FIELD(struct charge, amount_cents))

struct receipt {
    const char *id;
};
DEEDBOX_TYPE(receipt_type, struct receipt, DEEDBOX_FIELD(struct receipt, id))

static deedbox_result charge_once(deedbox_context *ctx, const struct order *order, struct receipt *receipt)
{
    struct charge charge = {order->order, order->amount_cents};
    const deedbox_response *answer;
    DEEDBOX_TRY(deedbox_send(ctx, &(deedbox_request){
        .method = "POST",
        .url = deedbox_format(ctx, "%s/v1/charges", order->provider_url),
        .identity = DEEDBOX_NAMED("charge"),
        .json = deedbox_encode(ctx, &charge_type, &charge),
    }, &answer));
    DEEDBOX_TRY(deedbox_error_for_status(answer));
    return deedbox_response_read(answer, &receipt_type, receipt);
}
DEEDBOX_ACTIVITY(charge_once, "charge-once", "Charges an order, exactly once.", order_type, receipt_type)

DEEDBOX_ACTIVITIES(&charge_once_activity)
