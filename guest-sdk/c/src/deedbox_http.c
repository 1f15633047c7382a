/*
 * Sending one request. The host claims each effect before it sends it, and answers it from the record when it was sent
 * before. So nothing here may retry by itself, follow a redirect, or invent a header or a key. What cannot be sent as it was
 * meant is not sent at all.
 */

#include <string.h>

#include "deedbox_host.h"

static bool same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        unsigned char x = (unsigned char)*a, y = (unsigned char)*b;
        x = x >= 'A' && x <= 'Z' ? (unsigned char)(x + 32) : x;
        y = y >= 'A' && y <= 'Z' ? (unsigned char)(y + 32) : y;
        if (x != y) {
            return false;
        }
        if (x == '\0') {
            return true;
        }
    }
}

const deedbox_header *deedbox_typed(deedbox_context *ctx, const deedbox_header *headers, size_t *count, const char *name,
                                    const char *type)
{
    for (size_t i = 0; i < *count; i++) {
        if (headers[i].name != NULL && same_name(headers[i].name, name)) {
            return headers;
        }
    }
    deedbox_header *more = deedbox_alloc(ctx, (*count + 1) * sizeof *more);
    if (*count > 0) {
        memcpy(more, headers, *count * sizeof *more);
    }
    more[*count] = (deedbox_header){name, deedbox_text_of(type)};
    *count += 1;
    return more;
}

static bool is_string(const char *string)
{
    return string != NULL && deedbox_is_utf8(string, strlen(string));
}

const char *deedbox_identity_mistake(deedbox_identity identity)
{
    bool is_business = identity.operation != NULL || identity.key != NULL;
    if (identity.name != NULL && is_business) {
        return "its effect has a name and is a business effect too: choose one";
    }
    if (identity.name != NULL) {
        return is_string(identity.name) ? NULL : "the name of its effect is not UTF-8";
    }
    bool is_whole = is_string(identity.operation) && is_string(identity.key);
    return !is_business || is_whole ? NULL : "a business effect needs an operation and a key, both UTF-8";
}

static const char *headers_mistake(const deedbox_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_string(headers[i].name)) {
            return "the name of a header is not UTF-8";
        }
    }
    return NULL;
}

static const char *lookup_mistake(const deedbox_lookup *lookup)
{
    if (lookup == NULL) {
        return NULL;
    }
    if (!is_string(lookup->url)) {
        return "the URL of its look-up is not UTF-8";
    }
    const deedbox_condition *conditions[] = {&lookup->found, &lookup->absent};
    for (size_t i = 0; i < 2; i++) {
        const deedbox_condition *condition = conditions[i];
        if ((condition->pointer != NULL && !is_string(condition->pointer)) ||
            (condition->equals != NULL && !is_string(condition->equals))) {
            return "a condition of its look-up is not UTF-8";
        }
    }
    return headers_mistake(lookup->headers, lookup->header_count);
}

static const char *mistake(const deedbox_request *request)
{
    int bodies = (request->body.data != NULL) + (request->json != NULL) + (request->form != NULL);
    const char *found = NULL;
    if (!is_string(request->method) || !is_string(request->url)) {
        return "it needs a method and a URL, both UTF-8";
    }
    if (bodies > 1) {
        return "it has more than one of body, json and form";
    }
    found = headers_mistake(request->headers, request->header_count);
    found = found != NULL ? found : deedbox_identity_mistake(request->identity);
    return found != NULL ? found : lookup_mistake(request->lookup);
}

static deedbox_result refused(deedbox_context *ctx, const char *why)
{
    return deedbox_call_failure(ctx, DEEDBOX_CALLEE_HTTP, DEEDBOX_ERROR_INVALID_REQUEST, why, 0);
}

deedbox_result deedbox_send(deedbox_context *ctx, const deedbox_request *request, const deedbox_response **response)
{
    *response = NULL;
    const char *why = mistake(request);
    if (why != NULL) {
        return refused(ctx, why);
    }
    deedbox_request ready = *request;
    const char *type = NULL;
    if (request->json != NULL) {
        deedbox_result unwritable = deedbox_print(ctx, request->json, &ready.body);
        if (unwritable != DEEDBOX_OK) {
            return refused(ctx, unwritable->message);
        }
        type = "application/json";
    } else if (request->form != NULL) {
        ready.body = deedbox_text_of(request->form);
        type = "application/x-www-form-urlencoded";
    }
    if (type != NULL) {
        ready.headers = deedbox_typed(ctx, ready.headers, &ready.header_count, "content-type", type);
    }
    ready.json = NULL;
    ready.form = NULL;
    deedbox_response *answer = deedbox_alloc(ctx, sizeof *answer);
    DEEDBOX_TRY(ctx->host->send(ctx, &ready, answer));
    answer->ctx = ctx;
    *response = answer;
    return DEEDBOX_OK;
}

bool deedbox_is_success(const deedbox_response *response)
{
    return response->status >= 200 && response->status < 300;
}

deedbox_result deedbox_error_for_status(const deedbox_response *response)
{
    unsigned status = response->status;
    if (status < 400) {
        return DEEDBOX_OK;
    }
    bool retryable = status == 408 || status == 425 || status == 429 || (status >= 500 && status < 600);
    deedbox_context *ctx = response->ctx;
    deedbox_failure *failed = retryable
        ? deedbox_retryable(ctx, "http-status", "the provider answered with status %u", status)
        : deedbox_permanent(ctx, "http-status", "the provider answered with status %u", status);
    deedbox_json *details = deedbox_json_object(ctx);
    deedbox_json_set(ctx, details, "status", deedbox_json_uint(ctx, status));
    return deedbox_with_details(failed, details);
}

const char *deedbox_response_header(const deedbox_response *response, const char *name)
{
    for (size_t i = 0; i < response->header_count; i++) {
        if (same_name(response->headers[i].name, name)) {
            return response->headers[i].value.data;
        }
    }
    return NULL;
}

deedbox_result deedbox_response_bytes(const deedbox_response *response, deedbox_text *bytes)
{
    if (!response->body_kept) {
        return deedbox_permanent(response->ctx, "body-not-kept",
                                 "the recorded answer has no body, because it was larger than the host keeps");
    }
    *bytes = response->body;
    return DEEDBOX_OK;
}

deedbox_result deedbox_response_string(const deedbox_response *response, const char **string)
{
    deedbox_text bytes;
    DEEDBOX_TRY(deedbox_response_bytes(response, &bytes));
    if (!deedbox_is_utf8(bytes.data, bytes.size) || memchr(bytes.data, '\0', bytes.size) != NULL) {
        return deedbox_permanent(response->ctx, "unexpected-body",
                                 "the answer cannot be read as asked: the body is not UTF-8, or holds a zero byte");
    }
    *string = bytes.data;
    return DEEDBOX_OK;
}

static const char PLACE[] = "the answer cannot be read as asked: body";

deedbox_result deedbox_response_json(const deedbox_response *response, const deedbox_json **json)
{
    deedbox_text bytes;
    DEEDBOX_TRY(deedbox_response_bytes(response, &bytes));
    return deedbox_parse_as(response->ctx, bytes, json, "unexpected-body", PLACE);
}

deedbox_result deedbox_response_read(const deedbox_response *response, const deedbox_type *type, void *value)
{
    const deedbox_json *json;
    DEEDBOX_TRY(deedbox_response_json(response, &json));
    return deedbox_read(response->ctx, json, type, value, "unexpected-body", PLACE, false);
}
