/* Reads a list, and writes a summary of it as one whole file. */

#include <string.h>

#include "samples.h"

struct import {
    const char *source_url;
    const char *path;
};
DEEDBOX_TYPE(import_type, struct import, DEEDBOX_FIELD(struct import, source_url), DEEDBOX_FIELD(struct import, path))

struct summary {
    int64_t rows;
    int64_t total_cents;
};
DEEDBOX_TYPE(summary_type, struct summary, DEEDBOX_FIELD(struct summary, rows), DEEDBOX_FIELD(struct summary, total_cents))

/* The amount behind the first comma, a whole number. False when there is none, or when it is beyond 64 bits. */
static bool amount_of(const char *line, size_t size, int64_t *amount)
{
    const char *end = line + size;
    const char *at = memchr(line, ',', size);
    if (at == NULL || ++at == end) {
        return false;
    }
    bool negative = *at == '-';
    at += *at == '-' || *at == '+';
    if (at == end) {
        return false;
    }
    *amount = 0;
    for (; at < end; at++) {
        int digit = *at - '0';
        if (digit < 0 || digit > 9 || *amount < INT64_MIN / 10 || *amount * 10 < INT64_MIN + digit) {
            return false;
        }
        /* Below zero, where one more number fits. */
        *amount = *amount * 10 - digit;
    }
    if (!negative && *amount == INT64_MIN) {
        return false;
    }
    *amount = negative ? *amount : -*amount;
    return true;
}

static bool add(int64_t *total, int64_t amount)
{
    if (amount > 0 ? *total > INT64_MAX - amount : *total < INT64_MIN - amount) {
        return false;
    }
    *total += amount;
    return true;
}

static deedbox_result sum(deedbox_context *ctx, const char *text, struct summary *summary)
{
    for (size_t number = 1; *text != '\0'; number++) {
        size_t size = strcspn(text, "\n");
        size_t content = size > 0 && text[size - 1] == '\r' ? size - 1 : size;
        int64_t amount;
        /* Line 1 is the header. */
        if (number > 1) {
            if (!amount_of(text, content, &amount) || !add(&summary->total_cents, amount)) {
                return deedbox_permanent(ctx, "bad-csv", "line %zu is not a name, a comma and an amount in cents", number);
            }
            summary->rows++;
        }
        text += size + (text[size] == '\n');
    }
    return DEEDBOX_OK;
}

static deedbox_result import_csv(deedbox_context *ctx, const struct import *import, struct summary *summary)
{
    const deedbox_response *answer;
    const char *text;
    DEEDBOX_TRY(deedbox_send(ctx, &(deedbox_request){.method = "GET", .url = import->source_url}, &answer));
    DEEDBOX_TRY(deedbox_error_for_status(answer));
    DEEDBOX_TRY(deedbox_response_string(answer, &text));
    DEEDBOX_TRY(sum(ctx, text, summary));
    const char *file = deedbox_format(ctx, "rows,total_cents\n%lld,%lld\n", (long long)summary->rows,
                                      (long long)summary->total_cents);
    return deedbox_write_file(ctx, import->path, deedbox_text_of(file), DEEDBOX_NAMED("summary"), NULL);
}
DEEDBOX_ACTIVITY(import_csv, "import-csv", "Sums the amounts of a list and writes the sum to a file.", import_type,
                 summary_type)
