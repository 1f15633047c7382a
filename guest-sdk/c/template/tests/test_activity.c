#include <deedbox_testing.h>

#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <string.h>

#define INPUT "{\"order\":\"42\",\"amount_cents\":1999,\"provider_url\":\"https://provider.test\"}"

static void an_order_is_charged_under_its_name(void)
{
    deedbox_fake *fake = deedbox_fake_for_run("0190b1c2-0000-7000-8000-000000000001", NULL);
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 201, .json = "{\"id\":\"ch_1\"}"});
    const char *output;
    assert(deedbox_fake_run(fake, "charge-once", INPUT, &output) == DEEDBOX_OK);
    assert(strcmp(output, "{\"id\":\"ch_1\"}") == 0);
    const deedbox_request *sent = deedbox_fake_sent(fake, 0);
    assert(strcmp(sent->url, "https://provider.test/v1/charges") == 0);
    assert(strcmp(sent->identity.name, "charge") == 0);
    assert(deedbox_fake_same_json(fake, sent->body.data, "{\"amount_cents\":1999,\"order\":\"42\"}"));
    deedbox_fake_free(fake);
}

static void a_provider_that_is_down_is_tried_again(void)
{
    deedbox_fake *fake = deedbox_fake_for_run("0190b1c2-0000-7000-8000-000000000001", NULL);
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 503});
    deedbox_result failure = deedbox_fake_run(fake, "charge-once", INPUT, NULL);
    assert(deedbox_failed_with(failure, "http-status") && failure->retryable);
    deedbox_fake_free(fake);
}

int main(void)
{
    an_order_is_charged_under_its_name();
    a_provider_that_is_down_is_tried_again();
    puts("2 passed, 0 failed");
    return 0;
}
