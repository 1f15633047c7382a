/* Reading an input, writing an output, and what their schemas say. */

#include "check.h"

struct line {
    uint32_t amount;
    const bool *taxed;
};
DEEDBOX_TYPE(line_type, struct line, DEEDBOX_FIELD(struct line, amount), DEEDBOX_OPTIONAL(struct line, taxed))

struct order {
    const char *order;
    int8_t rank;
    double weight;
    bool urgent;
    deedbox_text note;
    const deedbox_json *extra;
    const int64_t *limit;
    struct line first;
    const struct line *second;
    const struct line *lines;
    size_t line_count;
    const char *const *tags;
    size_t tag_count;
};
DEEDBOX_TYPE(order_type, struct order,
             DEEDBOX_FIELD(struct order, order),
             DEEDBOX_FIELD(struct order, rank),
             DEEDBOX_FIELD(struct order, weight),
             DEEDBOX_FIELD(struct order, urgent),
             DEEDBOX_FIELD_AS(struct order, note, "the note"),
             DEEDBOX_OPTIONAL(struct order, extra),
             DEEDBOX_OPTIONAL(struct order, limit),
             DEEDBOX_STRUCT(struct order, first, line_type),
             DEEDBOX_OPTIONAL_STRUCT(struct order, second, line_type),
             DEEDBOX_STRUCTS(struct order, lines, line_count, line_type),
             DEEDBOX_OPTIONAL_LIST(struct order, tags, tag_count))

static deedbox_result same(deedbox_context *ctx, const struct order *order, struct order *again)
{
    (void)ctx;
    *again = *order;
    return DEEDBOX_OK;
}
DEEDBOX_ACTIVITY(same, "same", "Gives its input back.", order_type, order_type)

static deedbox_result greet(deedbox_context *ctx, const deedbox_string_type_struct *name, deedbox_string_type_struct *words)
{
    *words = deedbox_format(ctx, "Hello %s", *name);
    return DEEDBOX_OK;
}
DEEDBOX_ACTIVITY(greet, "greet", "Greets.", deedbox_string_type, deedbox_string_type)

static deedbox_result refuse(deedbox_context *ctx, const deedbox_json_type_struct *input, double *output)
{
    int64_t number = 0;
    if (deedbox_json_is_int(*input, &number) && number > 0) {
        return deedbox_retry_after(deedbox_retryable(ctx, "later", "not \"%s\"", "now"), (uint64_t)number);
    }
    *output = number == 0 ? 1.5 : (double)number / 0.0;
    return DEEDBOX_OK;
}
DEEDBOX_ACTIVITY(refuse, "refuse", "Refuses what is above 0.", deedbox_json_type, deedbox_double_type)

DEEDBOX_DECLARE(charge);
DEEDBOX_ACTIVITIES(&same_activity, &greet_activity, &refuse_activity, &charge_activity)

#define START "{\"order\":\"42\",\"rank\":-128,\"weight\":1.5,\"urgent\":true,\"the note\":\"a\\u0000b\""
#define SHORTEST START ",\"first\":{\"amount\":1},\"lines\":[]}"

static void what_is_read_is_written(void)
{
    static const char *const inputs[] = {
        SHORTEST,
        START ",\"extra\":{\"big\":123456789012345678901234567890,\"n\":null},\"limit\":-9223372036854775808,"
              "\"first\":{\"amount\":1},\"second\":{\"amount\":4294967295,\"taxed\":false},\"lines\":[{\"amount\":2},{\"amount\":3,\"taxed\":true}],"
              "\"tags\":[\"x\",\"\"]}",
    };
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    for (size_t i = 0; i < 2; i++) {
        const char *output = NULL;
        CHECK(deedbox_fake_run(fake, "same", inputs[i], &output) == DEEDBOX_OK);
        CHECK_STRING(output, inputs[i]);
    }
    deedbox_fake_free(fake);
}

static void members_may_come_in_any_order_and_null_is_absent(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    const char *output = NULL;
    const char *input = "{\"lines\":[],\"first\":{\"taxed\":null,\"amount\":1},\"the note\":\"a\\u0000b\",\"tags\":null,"
                        "\"urgent\":true,\"limit\":null,\"weight\":15e-1,\"rank\":-128,\"order\":\"42\"}";
    CHECK(deedbox_fake_run(fake, "same", input, &output) == DEEDBOX_OK);
    CHECK_STRING(output, SHORTEST);
    deedbox_fake_free(fake);
}

static void an_input_that_does_not_fit_names_the_place(void)
{
    static const char *const cases[][2] = {
        {"", "input: this is not JSON: it is empty at byte 0"},
        {"{\"order\":", "input: this is not JSON: "},
        {"[]", "input: this is an array, and an object is expected"},
        {"{}", "input.order: this member is missing"},
        {"{\"ordr\":1}", "input.ordr: there is no such member; there are: order, rank, weight, urgent, the note, extra, "},
        {"{\"order\":\"1\",\"order\":\"2\"}", "input.order: this member is there twice"},
        {"{\"order\":null}", "input.order: this is null, and a string is expected"},
        {"{\"order\":\"a\\u0000\"}", "input.order: the string holds a zero byte"},
        {"{\"rank\":128}", "input.rank: the number is not in -128 to 127"},
        {"{\"rank\":1.0}", "input.rank: this is a number, and a whole one is expected"},
        {"{\"rank\":\"1\"}", "input.rank: this is a string, and an integer is expected"},
        {"{\"weight\":true}", "input.weight: this is a boolean, and a number is expected"},
        {"{\"urgent\":0}", "input.urgent: this is a number, and a boolean is expected"},
        {"{\"limit\":9223372036854775808}", "input.limit: the number is not in -9223372036854775808 to 9223372036854775807"},
        {"{\"first\":{\"amount\":-1}}", "input.first.amount: the number is not in 0 to 4294967295"},
        {"{\"second\":{}}", "input.second.amount: this member is missing"},
        {"{\"lines\":{}}", "input.lines: this is an object, and an array is expected"},
        {"{\"lines\":[{\"amount\":1},{\"amount\":\"x\"}]}", "input.lines[1].amount: this is a string, and an integer "},
        {"{\"tags\":[\"a\",7]}", "input.tags[1]: this is a number, and a string is expected"},
    };
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        deedbox_result failure = deedbox_fake_run(fake, "same", cases[i][0], NULL);
        CHECK_FAILED(failure, "invalid-input", cases[i][1]);
        CHECK(failure != DEEDBOX_OK && !failure->retryable);
    }
    CHECK_FAILED(deedbox_fake_run(fake, "nothing", "{}", NULL), "unknown-activity",
                 "this module has no activity \"nothing\"; it has: same, greet, refuse, charge");
    deedbox_fake_free(fake);
}

static void an_input_of_any_depth_does_no_harm(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    size_t depth = 200000;
    char *nested = deedbox_alloc(deedbox_fake_context(fake), 2 * depth + 1);
    memset(nested, '[', depth);
    memset(nested + depth, ']', depth);
    CHECK_FAILED(deedbox_fake_run(fake, "same", nested, NULL), "invalid-input", "input: this is an array");
    const char *output = NULL;
    CHECK(deedbox_fake_run(fake, "refuse", nested, &output) == DEEDBOX_OK);
    deedbox_fake_free(fake);
}

static void a_single_value_may_be_an_input(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    const char *output = NULL;
    CHECK(deedbox_fake_run(fake, "greet", " \"Ada\" ", &output) == DEEDBOX_OK);
    CHECK_STRING(output, "\"Hello Ada\"");
    CHECK(deedbox_fake_run(fake, "refuse", "0", &output) == DEEDBOX_OK);
    CHECK_STRING(output, "1.5");
    deedbox_fake_free(fake);
}

static void an_output_that_is_no_json_is_a_failure(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    CHECK_FAILED(deedbox_fake_run(fake, "refuse", "-1", NULL), "invalid-output", "this cannot be written as JSON: ");
    CHECK_FAILED(deedbox_fake_run(fake, "greet", "\"\xff\"", NULL), "invalid-input", "input: this is not JSON: ");
    deedbox_fake_free(fake);
}

static void a_failure_keeps_what_the_author_said(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_result failure = deedbox_fake_run(fake, "refuse", "250", NULL);
    CHECK_FAILED(failure, "later", "not \"now\"");
    CHECK(failure->retryable && failure->has_retry_after && failure->retry_after_ms == 250 && failure->details == NULL);
    CHECK(deedbox_failed_with(failure, "later") && !deedbox_failed_with(failure, "late"));
    CHECK(!deedbox_failed_with(DEEDBOX_OK, "later"));
    deedbox_fake_free(fake);
}

static void a_schema_says_what_is_read(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_context *ctx = deedbox_fake_context(fake);
    deedbox_text text;
    CHECK(deedbox_print(ctx, deedbox_schema(ctx, &line_type, true), &text) == DEEDBOX_OK);
    CHECK_STRING(text.data, "{\"type\":\"object\",\"properties\":{\"amount\":{\"type\":\"integer\",\"minimum\":0,"
                            "\"maximum\":4294967295},\"taxed\":{\"type\":[\"boolean\",\"null\"]}},\"required\":[\"amount\"],"
                            "\"additionalProperties\":false,\"$schema\":\"https://json-schema.org/draft/2020-12/schema\"}");
    CHECK(deedbox_print(ctx, deedbox_schema(ctx, &order_type, false), &text) == DEEDBOX_OK);
    CHECK(strstr(text.data, "\"lines\":{\"type\":\"array\",\"items\":{\"type\":\"object\"") != NULL);
    CHECK(strstr(text.data, "\"tags\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"string\"}}") != NULL);
    CHECK(strstr(text.data, "\"extra\":{}") != NULL);
    CHECK(strstr(text.data, "\"required\":[\"order\",\"rank\",\"weight\",\"urgent\",\"the note\",\"first\",\"lines\"]") != NULL);
    CHECK(strstr(text.data, "additionalProperties") == NULL);
    deedbox_fake_free(fake);
}

const test input_tests[] = {
    {"what is read is written, to the last digit", what_is_read_is_written},
    {"members may come in any order, and null is absent", members_may_come_in_any_order_and_null_is_absent},
    {"an input that does not fit names the place", an_input_that_does_not_fit_names_the_place},
    {"an input of any depth does no harm", an_input_of_any_depth_does_no_harm},
    {"a single value may be an input", a_single_value_may_be_an_input},
    {"an output that is no JSON is a failure", an_output_that_is_no_json_is_a_failure},
    {"a failure keeps what the author said", a_failure_keeps_what_the_author_said},
    {"a schema says what is read", a_schema_says_what_is_read},
    {NULL, NULL},
};
