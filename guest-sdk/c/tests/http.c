/* Requests and their answers. */

#include "check.h"

#define URL "https://provider.test/v1/charges"

struct receipt {
    const char *id;
};
DEEDBOX_TYPE(receipt_type, struct receipt, DEEDBOX_FIELD(struct receipt, id))

static deedbox_result charge(deedbox_context *ctx, const deedbox_json_type_struct *order, struct receipt *receipt)
{
    const deedbox_response *answer;
    DEEDBOX_TRY(deedbox_send(ctx, &(deedbox_request){
        .method = "POST",
        .url = URL,
        .identity = DEEDBOX_NAMED("charge"),
        .json = *order,
    }, &answer));
    DEEDBOX_TRY(deedbox_error_for_status(answer));
    return deedbox_response_read(answer, &receipt_type, receipt);
}
DEEDBOX_ACTIVITY(charge, "charge", "Charges.", deedbox_json_type, receipt_type)

static void a_named_effect_is_sent_as_json(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    const char *output = NULL;
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 201, .json = "{\"id\":\"ch_1\",\"more\":[]}"});
    CHECK(deedbox_fake_run(fake, "charge", "{\"b\":1,\"a\":[2]}", &output) == DEEDBOX_OK);
    CHECK_STRING(output, "{\"id\":\"ch_1\"}");
    const deedbox_request *sent = deedbox_fake_sent(fake, 0);
    CHECK(deedbox_fake_sent_count(fake) == 1 && deedbox_fake_sent(fake, 1) == NULL);
    CHECK_STRING(sent->method, "POST");
    CHECK_STRING(sent->url, URL);
    CHECK_STRING(sent->body.data, "{\"b\":1,\"a\":[2]}");
    CHECK_STRING(sent->identity.name, "charge");
    CHECK(sent->header_count == 1 && sent->timeout_ms == 0 && sent->on_unknown == DEEDBOX_PROVIDER_DEFAULT);
    CHECK_STRING(sent->headers[0].name, "content-type");
    CHECK_STRING(sent->headers[0].value.data, "application/json");
    CHECK(deedbox_fake_same_json(fake, sent->body.data, "{\"a\":[2],\"b\":1}"));
    deedbox_fake_free(fake);
}

/* F-J07. */
static void what_a_request_says_reaches_the_host(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_context *ctx = deedbox_fake_context(fake);
    const deedbox_response *answer;
    const char *form = deedbox_form(ctx, (const char *const[][2]){{"b", "x y&z"}, {"\xc3\xa4", "100%"}, {"empty", ""}}, 3);
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 404, .body = deedbox_text_of("no"), .source = DEEDBOX_REPLAYED,
                                                .headers = &(deedbox_header){"X-A", {"1", 1}}, .header_count = 1});
    CHECK(deedbox_send(ctx, &(deedbox_request){
        .method = "PATCH",
        .url = URL,
        .headers = &(deedbox_header){"Content-Type", {"text/x", 6}},
        .header_count = 1,
        .form = form,
        .identity = DEEDBOX_BUSINESS("charge", "42"),
        .on_unknown = DEEDBOX_AT_MOST_ONCE,
        .timeout_ms = 2000,
        .lookup = &(deedbox_lookup){.url = URL "/42", .settle_ms = 5,
                                    .found = {(const uint16_t[]){200}, 1, "/state", "paid"},
                                    .absent = {(const uint16_t[]){404, 410}, 2, NULL, NULL}},
    }, &answer) == DEEDBOX_OK);
    const deedbox_request *sent = deedbox_fake_sent(fake, 0);
    CHECK_STRING(sent->body.data, "b=x+y%26z&%C3%A4=100%25&empty=");
    CHECK(sent->header_count == 1 && sent->timeout_ms == 2000 && sent->on_unknown == DEEDBOX_AT_MOST_ONCE);
    CHECK_STRING(sent->identity.operation, "charge");
    CHECK_STRING(sent->identity.key, "42");
    CHECK_STRING(sent->lookup->found.equals, "paid");
    CHECK(sent->lookup->absent.statuses[1] == 410 && sent->lookup->settle_ms == 5);
    CHECK(answer->status == 404 && answer->source == DEEDBOX_REPLAYED && !deedbox_is_success(answer));
    CHECK_STRING(deedbox_response_header(answer, "x-a"), "1");
    CHECK(deedbox_response_header(answer, "x-b") == NULL);
    CHECK_STRING(deedbox_url_escape(ctx, "a b/\xc3\xa4~"), "a%20b%2F%C3%A4~");
    deedbox_fake_free(fake);
}

static void what_cannot_be_sent_as_it_is_meant_is_not_sent(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_context *ctx = deedbox_fake_context(fake);
    const deedbox_response *answer;
    const deedbox_request wrong[] = {
        {.url = URL},
        {.method = "POST"},
        {.method = "POST", .url = "https://\xff"},
        {.method = "POST", .url = URL, .form = "a=1", .body = {"x", 1}},
        {.method = "POST", .url = URL, .identity = {.name = "a", .operation = "b"}},
        {.method = "POST", .url = URL, .identity = {.operation = "b"}},
        {.method = "POST", .url = URL, .identity = {.name = "\xc0\x80"}},
        {.method = "POST", .url = URL, .headers = &(deedbox_header){NULL, {"", 0}}, .header_count = 1},
        {.method = "POST", .url = URL, .json = deedbox_json_double(ctx, 1.0 / 0.0)},
        {.method = "POST", .url = URL, .json = deedbox_json_string(ctx, "\xed\xa0\x80")},
        {.method = "POST", .url = URL, .lookup = &(deedbox_lookup){0}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_FAILED(deedbox_send(ctx, &wrong[i], &answer), "invalid-request", "the request cannot be sent as it stands: ");
        CHECK(answer == NULL);
    }
    CHECK(deedbox_fake_sent_count(fake) == 0);
    deedbox_fake_free(fake);
}

static void every_error_of_the_host_has_its_code(void)
{
    static const struct {
        const char *code, *message;
        bool retryable;
    } cases[] = {
        {"denied", "the deployment does not allow this call: why", false},
        {"effect-mismatch", "why", false},
        {"in-flight", "another attempt or run holds this effect", true},
        {"outcome-unknown", "nobody knows whether this effect happened, and policy forbids sending it again: why", false},
        {"unreachable", "the provider could not be reached: why", true},
        {"timed-out", "no whole answer came in time", true},
        {"response-too-large", "the answer is larger than the host's limit of 0 bytes", false},
        {"invalid-request", "the request cannot be sent as it stands: why", false},
        {"connection-lost", "the connection broke after the request was sent: why", true},
    };
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        deedbox_fake_answer(fake, &(deedbox_answer){.error = cases[i].code, .text = "why"});
        deedbox_result failure = deedbox_fake_run(fake, "charge", "{}", NULL);
        CHECK_FAILED(failure, cases[i].code, cases[i].message);
        CHECK(failure->retryable == cases[i].retryable);
    }
    deedbox_fake_free(fake);
}

static void a_status_above_399_is_a_failure_when_asked(void)
{
    static const uint16_t retryable[] = {408, 425, 429, 500, 599}, permanent[] = {400, 401, 409, 422, 600};
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_text text;
    for (size_t i = 0; i < 10; i++) {
        deedbox_fake_answer(fake, &(deedbox_answer){.status = i < 5 ? retryable[i] : permanent[i - 5]});
        deedbox_result failure = deedbox_fake_run(fake, "charge", "{}", NULL);
        CHECK_FAILED(failure, "http-status", "the provider answered with status ");
        CHECK(failure->retryable == (i < 5));
        CHECK(deedbox_print(deedbox_fake_context(fake), failure->details, &text) == DEEDBOX_OK);
        CHECK(strncmp(text.data, "{\"status\":", 10) == 0);
    }
    deedbox_fake_free(fake);
}

static void a_body_that_is_not_what_was_asked_for_is_a_failure(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_context *ctx = deedbox_fake_context(fake);
    const deedbox_response *answer;
    const char *string;
    deedbox_fake_answer(fake, &(deedbox_answer){.without_body = true});
    CHECK_FAILED(deedbox_fake_run(fake, "charge", "{}", NULL), "body-not-kept", "the recorded answer has no body");
    deedbox_fake_answer(fake, &(deedbox_answer){.json = "{\"id\":7}"});
    CHECK_FAILED(deedbox_fake_run(fake, "charge", "{}", NULL), "unexpected-body",
                 "the answer cannot be read as asked: body.id: this is a number, and a string is expected");
    deedbox_fake_answer(fake, &(deedbox_answer){.status = 200});
    CHECK_FAILED(deedbox_fake_run(fake, "charge", "{}", NULL), "unexpected-body",
                 "the answer cannot be read as asked: body: this is not JSON: it is empty");
    deedbox_fake_answer(fake, &(deedbox_answer){.body = {"\xff", 1}});
    CHECK(deedbox_send(ctx, &(deedbox_request){.method = "GET", .url = URL}, &answer) == DEEDBOX_OK);
    CHECK_FAILED(deedbox_response_string(answer, &string), "unexpected-body", "");
    deedbox_fake_free(fake);
}

static void one_value_may_be_put_into_several_places(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_context *ctx = deedbox_fake_context(fake);
    deedbox_json *list = deedbox_json_array(ctx);
    deedbox_json_append(list, deedbox_json_int(ctx, 1));
    deedbox_json_append(list, deedbox_json_null(ctx));
    const deedbox_json *shared = list;
    deedbox_json *both = deedbox_json_array(ctx);
    deedbox_json_append(both, deedbox_encode(ctx, &deedbox_json_type, &shared));
    deedbox_json_append(both, deedbox_encode(ctx, &deedbox_json_type, &shared));
    deedbox_text text;
    CHECK(deedbox_print(ctx, both, &text) == DEEDBOX_OK);
    CHECK_STRING(text.data, "[[1,null],[1,null]]");
    deedbox_json *object = deedbox_json_object(ctx);
    deedbox_json_set(ctx, object, "a", deedbox_json_bool(ctx, true));
    deedbox_json_set(ctx, object, "a", deedbox_json_uint(ctx, UINT64_MAX));
    CHECK(deedbox_json_size(object) == 1 && deedbox_json_size(both) == 2);
    CHECK(deedbox_print(ctx, object, &text) == DEEDBOX_OK);
    CHECK_STRING(text.data, "{\"a\":18446744073709551615}");
    deedbox_fake_free(fake);
}

const test http_tests[] = {
    {"a named effect is sent as JSON", a_named_effect_is_sent_as_json},
    {"what a request says reaches the host", what_a_request_says_reaches_the_host},
    {"what cannot be sent as it is meant is not sent", what_cannot_be_sent_as_it_is_meant_is_not_sent},
    {"every error of the host has its code", every_error_of_the_host_has_its_code},
    {"a status above 399 is a failure when asked", a_status_above_399_is_a_failure_when_asked},
    {"a body that is not what was asked for is a failure", a_body_that_is_not_what_was_asked_for_is_a_failure},
    {"one value may be put into several places", one_value_may_be_put_into_several_places},
    {NULL, NULL},
};
