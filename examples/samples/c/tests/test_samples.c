/* The samples under the fake context: what they send, under which identity, and what they make of the answers. */

#include <deedbox_testing.h>

#include <stdio.h>
#include <string.h>

#define RUN "0190b1c2-0000-7000-8000-000000000001"

static int passed, failed;

static void check(const char *fact, bool holds)
{
    printf("%s %s\n", holds ? "ok    " : "FAILED", fact);
    holds ? passed++ : failed++;
}

/* Runs an activity on an input and compares its output. */
static bool gives(deedbox_fake *fake, const char *activity, const char *input, const char *wanted)
{
    const char *output = NULL;
    deedbox_result failure = deedbox_fake_run(fake, activity, input, &output);
    if (failure != DEEDBOX_OK) {
        printf("       %s: %s\n", failure->code, failure->message);
        return false;
    }
    bool same = deedbox_fake_same_json(fake, output, wanted);
    if (!same) {
        printf("       got %s\n", output);
    }
    return same;
}

static bool sent_was(deedbox_fake *fake, size_t index, const char *effect, const char *url, const char *body)
{
    const deedbox_request *sent = deedbox_fake_sent(fake, index);
    return sent != NULL && sent->identity.name != NULL && strcmp(sent->identity.name, effect) == 0 &&
           strcmp(sent->url, url) == 0 && deedbox_fake_same_json(fake, sent->body.data, body);
}

#define ORDER "{\"provider_url\":\"http://p\",\"order\":\"42\",\"amount_cents\":1999,\"customer\":\"c\"}"

static void charge_once(deedbox_fake *fake)
{
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 201, .json = "{\"id\":\"ch_1\"}"});
    check("charge-once charges", gives(fake, "charge-once", ORDER, "{\"outcome\":\"charged\",\"charge_id\":\"ch_1\"}"));
    check("charge-once sends one named effect",
          sent_was(fake, 0, "charge", "http://p/v1/charges", "{\"amount_cents\":1999,\"customer\":\"c\",\"order\":\"42\"}"));
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 402, .json = "{\"code\":\"card_declined\"}"});
    check("charge-once gives a rejection as a value",
          gives(fake, "charge-once", ORDER, "{\"outcome\":\"rejected\",\"status\":402,\"reason\":{\"code\":\"card_declined\"}}"));
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 400, .body = deedbox_text_of("no")});
    check("charge-once gives a reason that is no JSON as text",
          gives(fake, "charge-once", ORDER, "{\"outcome\":\"rejected\",\"status\":400,\"reason\":\"no\"}"));
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 429});
    deedbox_result failure = deedbox_fake_run(fake, "charge-once", ORDER, NULL);
    check("charge-once tries again after 429", deedbox_failed_with(failure, "http-status") && failure->retryable);
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 401});
    failure = deedbox_fake_run(fake, "charge-once", ORDER, NULL);
    check("charge-once ends at 401", deedbox_failed_with(failure, "http-status") && !failure->retryable);
}

static void welcome_user(deedbox_fake *fake)
{
    const char *account, *mail;
    deedbox_context *ctx = deedbox_fake_context(fake);
    bool keys = deedbox_subkey(ctx, "account", &account) == DEEDBOX_OK && deedbox_subkey(ctx, "mail", &mail) == DEEDBOX_OK;
    deedbox_fake_answer(fake, &(deedbox_answer){.json = "{\"id\":\"a1\"}"});
    deedbox_fake_answer(fake, &(deedbox_answer){.json = "{\"id\":\"m1\"}"});
    check("welcome-user makes both", keys && gives(fake, "welcome-user",
          "{\"provider_url\":\"http://p\",\"user\":\"ada\",\"email\":\"a@b\"}", "{\"account_id\":\"a1\",\"mail_id\":\"m1\"}"));
    check("welcome-user sends the account", sent_was(fake, 0, "create-account", "http://p/v1/accounts",
          deedbox_format(ctx, "{\"user\":\"ada\",\"email\":\"a@b\",\"reference\":\"%s\"}", account)));
    check("welcome-user sends the mail", sent_was(fake, 1, "welcome-mail", "http://p/v1/mails",
          deedbox_format(ctx, "{\"to\":\"a@b\",\"account\":\"a1\",\"reference\":\"%s\"}", mail)));
}

static void import_csv(deedbox_fake *fake)
{
    const char *input = "{\"source_url\":\"http://s/list\",\"path\":\"out/sum.csv\"}";
    deedbox_fake_answer(fake, &(deedbox_answer){.body = deedbox_text_of("name,amount_cents\na,100\r\nb,-20\n")});
    check("import-csv sums", gives(fake, "import-csv", input, "{\"rows\":2,\"total_cents\":80}"));
    const deedbox_fake_file *file = deedbox_fake_written(fake, 0);
    check("import-csv writes one named file", file != NULL && strcmp(file->path, "out/sum.csv") == 0 &&
          strcmp(file->bytes.data, "rows,total_cents\n2,80\n") == 0 && strcmp(file->identity.name, "summary") == 0);
    static const char *const bad[] = {"h\na,1\nb,x\n", "h\na,1\nb\n", "h\na,1\nb,\n", "h\na,1\nb,9223372036854775808\n",
                                      "h\na,1\nb,9223372036854775807\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        deedbox_fake_answer(fake, &(deedbox_answer){.body = deedbox_text_of(bad[i])});
        deedbox_result failure = deedbox_fake_run(fake, "import-csv", input, NULL);
        check("import-csv names the bad line", deedbox_failed_with(failure, "bad-csv") &&
              strncmp(failure->message, "line 3 ", 7) == 0);
    }
}

static void wait_for_webhook(deedbox_fake *fake)
{
    const char *input = "{\"provider_url\":\"http://p\",\"order\":\"42\",\"wait_ms\":5}";
    deedbox_fake_answer(fake, &(deedbox_answer){.json = "{\"id\":\"p1\"}"});
    check("wait-for-webhook expires", gives(fake, "wait-for-webhook", input, "{\"outcome\":\"expired\"}"));
    deedbox_fake_deliver(fake, "paid", "{\"by\":\"card\"}");
    deedbox_fake_answer(fake, &(deedbox_answer){.json = "{\"id\":\"p1\"}"});
    check("wait-for-webhook is paid", gives(fake, "wait-for-webhook",
          "{\"provider_url\":\"http://p\",\"order\":\"42\",\"wait_ms\":null}",
          "{\"outcome\":\"paid\",\"payment_id\":\"p1\",\"by\":\"card\"}"));
    deedbox_context *ctx = deedbox_fake_context(fake);
    check("wait-for-webhook refers to the run", sent_was(fake, 0, "request-payment", "http://p/v1/payments",
          deedbox_format(ctx, "{\"order\":\"42\",\"reference\":\"%s\"}", deedbox_idempotency_key(ctx))));
}

static void reject_as_data(deedbox_fake *fake)
{
    const char *input = "{\"provider_url\":\"http://p\",\"order\":\"42\"}";
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 201, .json = "{\"id\":\"o1\"}"});
    check("reject-as-data places", gives(fake, "reject-as-data", input, "{\"outcome\":\"placed\",\"order_id\":\"o1\"}"));
    const deedbox_identity by = deedbox_fake_sent(fake, 0)->identity;
    check("reject-as-data is a business effect", by.name == NULL && strcmp(by.operation, "place-order") == 0 &&
          strcmp(by.key, "42") == 0);
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 409, .json = "{\"why\":\"stock\"}"});
    check("reject-as-data gives a rejection as a value",
          gives(fake, "reject-as-data", input, "{\"outcome\":\"rejected\",\"reason\":{\"why\":\"stock\"}}"));
}

static void the_others(deedbox_fake *fake)
{
    deedbox_context *ctx = deedbox_fake_context(fake);
    const char *key;
    bool has_key = deedbox_subkey(ctx, "a", &key) == DEEDBOX_OK;
    check("keys shows the keys", has_key && gives(fake, "keys", "{\"names\":[\"a\"]}",
          deedbox_format(ctx, "{\"run\":\"%s\",\"subkeys\":{\"a\":\"%s\"}}", deedbox_idempotency_key(ctx), key)));
    deedbox_result failure = deedbox_fake_run(fake, "fail",
        "{\"code\":\"c\",\"message\":\"100%\",\"kind\":\"retryable\",\"retry_after_ms\":7,\"details\":[1]}", NULL);
    check("fail fails as it is told", deedbox_failed_with(failure, "c") && failure->retryable &&
          failure->retry_after_ms == 7 && strcmp(failure->message, "100%") == 0 && failure->details != NULL);
    check("publish publishes", gives(fake, "publish", "{\"subject\":\"s\",\"text\":\"t\"}",
          "{\"stream\":\"TEST\",\"sequence\":1}"));
    check("log says it", gives(fake, "log", "{\"words\":\"w\"}", "null"));
    const char *whole = "{\"a\":1,\"b\":\"\\u0000\",\"c\":false,\"nested\":{\"list\":[\"x\"]}}";
    check("echo gives the same back", gives(fake, "echo", whole, whole));
    check("echo refuses what it does not know",
          deedbox_failed_with(deedbox_fake_run(fake, "echo", "{\"a\":1,\"b\":\"\",\"d\":1}", NULL), "invalid-input"));
    check("checkpointed saves after each step", deedbox_fake_state(fake).size == 0);
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 200});
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 503});
    const char *steps = "{\"steps\":2,\"provider_url\":\"http://p\"}";
    failure = deedbox_fake_run(fake, "checkpointed", steps, NULL);
    check("checkpointed fails at the second", deedbox_failed_with(failure, "http-status"));
    check("checkpointed has noted the first", strcmp(deedbox_fake_state(fake).data, "{\"done\":1}") == 0);
    deedbox_fake_set_attempt(fake, 2);
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 200});
    check("checkpointed goes on from there", gives(fake, "checkpointed", steps, "{\"done\":2,\"began_at\":1}"));
    check("checkpointed names each step", sent_was(fake, 2, "step-2", "http://p/v1/steps", "{\"step\":2}"));
}

int main(void)
{
    static void (*const tests[])(deedbox_fake *) = {charge_once,      welcome_user,   import_csv,
                                                    wait_for_webhook, reject_as_data, the_others};
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        deedbox_fake *fake = deedbox_fake_for_run(RUN, NULL);
        tests[i](fake);
        deedbox_fake_free(fake);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
