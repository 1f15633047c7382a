/*
 * The component: the host's imports behind deedbox_host, and the exports that the host calls. For wasm only. It holds no
 * state between calls. What the host gave is copied into the attempt's memory and freed at once.
 */

#ifdef __wasm__

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../generated/activity.h"
#include "deedbox_host.h"

static activity_string_t lent(const char *string)
{
    return (activity_string_t){(uint8_t *)(uintptr_t)string, strlen(string)};
}

static activity_list_u8_t lent_bytes(deedbox_text text)
{
    return (activity_list_u8_t){(uint8_t *)(uintptr_t)text.data, text.size};
}

static activity_option_string_t lent_option(const char *string)
{
    return string == NULL ? (activity_option_string_t){0} : (activity_option_string_t){true, lent(string)};
}

static const char *kept(deedbox_context *ctx, activity_string_t given)
{
    return deedbox_copy(ctx, given.ptr, given.len).data;
}

static const char *idempotency_key(deedbox_context *ctx)
{
    activity_string_t given;
    deedbox_activity_idempotency_idempotency_key(&given);
    const char *key = kept(ctx, given);
    activity_string_free(&given);
    return key;
}

static const char *subkey(deedbox_context *ctx, deedbox_text name)
{
    activity_string_t asked = {(uint8_t *)(uintptr_t)name.data, name.size};
    activity_string_t given;
    deedbox_activity_idempotency_key_error_t error;
    if (!deedbox_activity_idempotency_subkey(&asked, &given, &error)) {
        return NULL;
    }
    const char *key = kept(ctx, given);
    activity_string_free(&given);
    return key;
}

static deedbox_run run(deedbox_context *ctx)
{
    deedbox_activity_context_run_info_t given;
    deedbox_activity_context_run(&given);
    deedbox_run info = {kept(ctx, given.tenant), kept(ctx, given.run_id), kept(ctx, given.activity),
                        given.attempt,           given.max_attempts,      given.remaining_ms};
    deedbox_activity_context_run_info_free(&given);
    return info;
}

static bool cancelled(deedbox_context *ctx)
{
    (void)ctx;
    return deedbox_activity_context_cancelled();
}

static deedbox_activity_http_identity_t identity_of(deedbox_identity identity)
{
    deedbox_activity_http_identity_t lent_identity = {.tag = DEEDBOX_ACTIVITY_HTTP_IDENTITY_POSITIONAL};
    if (identity.name != NULL) {
        lent_identity.tag = DEEDBOX_ACTIVITY_HTTP_IDENTITY_NAMED;
        lent_identity.val.named = lent(identity.name);
    } else if (identity.operation != NULL) {
        lent_identity.tag = DEEDBOX_ACTIVITY_HTTP_IDENTITY_BUSINESS;
        lent_identity.val.business.operation = lent(identity.operation);
        lent_identity.val.business.key = lent(identity.key);
    }
    return lent_identity;
}

static activity_list_tuple2_string_list_u8_t headers_of(deedbox_context *ctx, const deedbox_header *headers, size_t count)
{
    activity_tuple2_string_list_u8_t *all = deedbox_alloc(ctx, count * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        all[i] = (activity_tuple2_string_list_u8_t){lent(headers[i].name), lent_bytes(headers[i].value)};
    }
    return (activity_list_tuple2_string_list_u8_t){all, count};
}

static deedbox_activity_http_condition_t condition_of(const deedbox_condition *condition)
{
    return (deedbox_activity_http_condition_t){
        .statuses = {(uint16_t *)(uintptr_t)condition->statuses, condition->status_count},
        .pointer = lent_option(condition->pointer),
        .equals = lent_option(condition->equals),
    };
}

static deedbox_activity_http_options_t options_of(deedbox_context *ctx, const deedbox_request *request)
{
    deedbox_activity_http_options_t options = {
        .identity = identity_of(request->identity),
        .on_unknown = (deedbox_activity_http_on_unknown_t)request->on_unknown,
    };
    const deedbox_lookup *lookup = request->lookup;
    if (lookup != NULL) {
        options.lookup.is_some = true;
        options.lookup.val = (deedbox_activity_http_lookup_t){
            .request = {.method = lent("GET"),
                        .url = lent(lookup->url),
                        .headers = headers_of(ctx, lookup->headers, lookup->header_count)},
            .found = condition_of(&lookup->found),
            .absent = condition_of(&lookup->absent),
            .settle_ms = lookup->settle_ms,
        };
    }
    return options;
}

/* The cases of http's error, in their order. */
static deedbox_result send_failure(deedbox_context *ctx, deedbox_activity_http_error_t *error)
{
    uint8_t tag = error->tag;
    if (tag == DEEDBOX_ACTIVITY_HTTP_ERROR_RESPONSE_TOO_LARGE) {
        return deedbox_call_failure(ctx, DEEDBOX_CALLEE_HTTP, DEEDBOX_ERROR_RESPONSE_TOO_LARGE, NULL,
                                    error->val.response_too_large);
    }
    bool has_text = tag != DEEDBOX_ACTIVITY_HTTP_ERROR_IN_FLIGHT && tag != DEEDBOX_ACTIVITY_HTTP_ERROR_TIMED_OUT;
    const char *text = has_text ? kept(ctx, error->val.denied) : NULL;
    deedbox_activity_http_error_free(error);
    return deedbox_call_failure(ctx, DEEDBOX_CALLEE_HTTP, (deedbox_error)tag, text, 0);
}

static void take_response(deedbox_context *ctx, deedbox_activity_http_response_t *given, deedbox_response *response)
{
    deedbox_header *headers = deedbox_alloc(ctx, given->headers.len * sizeof *headers);
    for (size_t i = 0; i < given->headers.len; i++) {
        activity_list_u8_t value = given->headers.ptr[i].f1;
        headers[i] = (deedbox_header){kept(ctx, given->headers.ptr[i].f0), deedbox_copy(ctx, value.ptr, value.len)};
    }
    response->status = given->status;
    response->headers = headers;
    response->header_count = given->headers.len;
    response->body_kept = given->body.tag == DEEDBOX_ACTIVITY_HTTP_BODY_BYTES;
    if (response->body_kept) {
        response->body = deedbox_copy(ctx, given->body.val.bytes.ptr, given->body.val.bytes.len);
    }
    response->source = (deedbox_source)given->source;
    response->effect_id = given->effect_id.is_some ? kept(ctx, given->effect_id.val) : NULL;
    deedbox_activity_http_response_free(given);
}

static deedbox_result send(deedbox_context *ctx, const deedbox_request *request, deedbox_response *response)
{
    deedbox_activity_http_request_t asked = {
        .method = lent(request->method),
        .url = lent(request->url),
        .headers = headers_of(ctx, request->headers, request->header_count),
        .body = lent_bytes(request->body),
        .timeout_ms = {request->timeout_ms > 0, request->timeout_ms},
    };
    deedbox_activity_http_options_t options = options_of(ctx, request);
    deedbox_activity_http_response_t given;
    deedbox_activity_http_error_t error;
    if (!deedbox_activity_http_send(&asked, &options, &given, &error)) {
        return send_failure(ctx, &error);
    }
    take_response(ctx, &given, response);
    return DEEDBOX_OK;
}

static deedbox_result publish_failure(deedbox_context *ctx, deedbox_activity_messaging_error_t *error)
{
    static const deedbox_error cases[] = {
        [DEEDBOX_ACTIVITY_MESSAGING_ERROR_DENIED] = DEEDBOX_ERROR_DENIED,
        [DEEDBOX_ACTIVITY_MESSAGING_ERROR_EFFECT_MISMATCH] = DEEDBOX_ERROR_EFFECT_MISMATCH,
        [DEEDBOX_ACTIVITY_MESSAGING_ERROR_IN_FLIGHT] = DEEDBOX_ERROR_IN_FLIGHT,
        [DEEDBOX_ACTIVITY_MESSAGING_ERROR_OUTCOME_UNKNOWN] = DEEDBOX_ERROR_OUTCOME_UNKNOWN,
        [DEEDBOX_ACTIVITY_MESSAGING_ERROR_UNREACHABLE] = DEEDBOX_ERROR_UNREACHABLE,
        [DEEDBOX_ACTIVITY_MESSAGING_ERROR_TIMED_OUT] = DEEDBOX_ERROR_TIMED_OUT,
        [DEEDBOX_ACTIVITY_MESSAGING_ERROR_INVALID_REQUEST] = DEEDBOX_ERROR_INVALID_REQUEST,
        [DEEDBOX_ACTIVITY_MESSAGING_ERROR_REFUSED] = DEEDBOX_ERROR_MESSAGE_REFUSED,
        [DEEDBOX_ACTIVITY_MESSAGING_ERROR_CONNECTION_LOST] = DEEDBOX_ERROR_CONNECTION_LOST,
    };
    uint8_t tag = error->tag;
    bool has_text =
        tag != DEEDBOX_ACTIVITY_MESSAGING_ERROR_IN_FLIGHT && tag != DEEDBOX_ACTIVITY_MESSAGING_ERROR_TIMED_OUT;
    const char *text = has_text ? kept(ctx, error->val.denied) : NULL;
    deedbox_activity_messaging_error_free(error);
    return deedbox_call_failure(ctx, DEEDBOX_CALLEE_MESSAGING, cases[tag], text, 0);
}

static deedbox_result publish(deedbox_context *ctx, const deedbox_message *message, deedbox_published *published)
{
    activity_tuple2_string_string_t *headers = deedbox_alloc(ctx, message->header_count * sizeof *headers);
    for (size_t i = 0; i < message->header_count; i++) {
        deedbox_text value = message->headers[i].value;
        headers[i].f0 = lent(message->headers[i].name);
        headers[i].f1 = (activity_string_t){(uint8_t *)(uintptr_t)value.data, value.size};
    }
    deedbox_activity_messaging_options_t options = {
        .identity = identity_of(message->identity),
        .on_unknown = (deedbox_activity_messaging_on_unknown_t)message->on_unknown,
        .headers = {headers, message->header_count},
    };
    activity_string_t subject = lent(message->subject);
    activity_list_u8_t payload = lent_bytes(message->payload);
    deedbox_activity_messaging_published_t given;
    deedbox_activity_messaging_error_t error;
    if (!deedbox_activity_messaging_publish(&subject, &payload, &options, &given, &error)) {
        return publish_failure(ctx, &error);
    }
    *published = (deedbox_published){kept(ctx, given.stream),     given.sequence,
                                     given.duplicate,             kept(ctx, given.message_id),
                                     (deedbox_source)given.source, kept(ctx, given.effect_id)};
    deedbox_activity_messaging_published_free(&given);
    return DEEDBOX_OK;
}

static deedbox_result write_failure(deedbox_context *ctx, deedbox_activity_files_error_t *error)
{
    static const deedbox_error cases[] = {
        [DEEDBOX_ACTIVITY_FILES_ERROR_DENIED] = DEEDBOX_ERROR_DENIED,
        [DEEDBOX_ACTIVITY_FILES_ERROR_EFFECT_MISMATCH] = DEEDBOX_ERROR_EFFECT_MISMATCH,
        [DEEDBOX_ACTIVITY_FILES_ERROR_IN_FLIGHT] = DEEDBOX_ERROR_IN_FLIGHT,
        [DEEDBOX_ACTIVITY_FILES_ERROR_INVALID_REQUEST] = DEEDBOX_ERROR_INVALID_REQUEST,
        [DEEDBOX_ACTIVITY_FILES_ERROR_FAILED] = DEEDBOX_ERROR_WRITE_FAILED,
    };
    uint8_t tag = error->tag;
    const char *text = tag == DEEDBOX_ACTIVITY_FILES_ERROR_IN_FLIGHT ? NULL : kept(ctx, error->val.denied);
    deedbox_activity_files_error_free(error);
    return deedbox_call_failure(ctx, DEEDBOX_CALLEE_FILES, cases[tag], text, 0);
}

static deedbox_result write(deedbox_context *ctx, const char *path, deedbox_text bytes, deedbox_identity identity,
                            deedbox_written *written)
{
    activity_string_t asked = lent(path);
    activity_list_u8_t content = lent_bytes(bytes);
    deedbox_activity_files_identity_t known_by = identity_of(identity);
    deedbox_activity_files_written_t given;
    deedbox_activity_files_error_t error;
    if (!deedbox_activity_files_write(&asked, &content, &known_by, &given, &error)) {
        return write_failure(ctx, &error);
    }
    *written = (deedbox_written){(deedbox_source)given.source, kept(ctx, given.effect_id)};
    deedbox_activity_files_written_free(&given);
    return DEEDBOX_OK;
}

static void take_signal(deedbox_context *ctx, deedbox_activity_signals_option_signal_t *given, const deedbox_signal **signal)
{
    *signal = NULL;
    if (given->is_some) {
        deedbox_signal *taken = deedbox_alloc(ctx, sizeof *taken);
        deedbox_text payload = deedbox_copy(ctx, given->val.payload.ptr, given->val.payload.len);
        *taken = (deedbox_signal){ctx, kept(ctx, given->val.name), payload, given->val.sequence};
        *signal = taken;
    }
    deedbox_activity_signals_option_signal_free(given);
}

static deedbox_signal_outcome refused(deedbox_activity_signals_signal_error_t error)
{
    bool is_name = error == DEEDBOX_ACTIVITY_SIGNALS_SIGNAL_ERROR_INVALID_NAME;
    return is_name ? DEEDBOX_SIGNAL_INVALID_NAME : DEEDBOX_SIGNAL_TOO_MANY_CALLS;
}

static deedbox_signal_outcome poll(deedbox_context *ctx, const char *name, const deedbox_signal **signal)
{
    activity_string_t asked = lent(name);
    deedbox_activity_signals_option_signal_t given;
    deedbox_activity_signals_signal_error_t error;
    if (!deedbox_activity_signals_poll(&asked, &given, &error)) {
        return refused(error);
    }
    take_signal(ctx, &given, signal);
    return DEEDBOX_SIGNAL_GIVEN;
}

static deedbox_signal_outcome wait(deedbox_context *ctx, const char *name, const uint64_t *timeout_ms,
                                   const deedbox_signal **signal)
{
    activity_string_t asked = lent(name);
    deedbox_activity_signals_option_signal_t given;
    deedbox_activity_signals_signal_error_t error;
    if (!deedbox_activity_signals_wait(&asked, (uint64_t *)(uintptr_t)timeout_ms, &given, &error)) {
        return refused(error);
    }
    take_signal(ctx, &given, signal);
    return DEEDBOX_SIGNAL_GIVEN;
}

static bool save(deedbox_context *ctx, deedbox_text state)
{
    (void)ctx;
    activity_list_u8_t bytes = lent_bytes(state);
    deedbox_activity_checkpoint_checkpoint_error_t error;
    return deedbox_activity_checkpoint_save(&bytes, &error);
}

static bool load(deedbox_context *ctx, deedbox_text *state)
{
    activity_list_u8_t given;
    if (!deedbox_activity_checkpoint_load(&given)) {
        return false;
    }
    *state = deedbox_copy(ctx, given.ptr, given.len);
    activity_list_u8_free(&given);
    return true;
}

static const deedbox_host host = {idempotency_key, subkey, run, cancelled, send, publish, write, poll, wait, save, load};

static activity_string_t given_away(deedbox_text text)
{
    activity_string_t string;
    activity_string_dup_n(&string, text.data, text.size);
    return string;
}

static activity_string_t given_away_string(deedbox_context *ctx, const char *string)
{
    return given_away(deedbox_text_of(deedbox_as_utf8(ctx, string)));
}

static activity_option_string_t given_away_json(deedbox_context *ctx, const deedbox_json *json)
{
    deedbox_text text;
    if (json == NULL || deedbox_print(ctx, json, &text) != DEEDBOX_OK) {
        return (activity_option_string_t){0};
    }
    return (activity_option_string_t){true, given_away(text)};
}

void exports_deedbox_activity_activities_describe(exports_deedbox_activity_activities_list_descriptor_t *ret)
{
    deedbox_context ctx;
    deedbox_open(&ctx, &host, NULL);
    size_t count = 0;
    while (deedbox_activities[count] != NULL) {
        count++;
    }
    ret->ptr = calloc(count + 1, sizeof *ret->ptr);
    ret->len = count;
    if (ret->ptr == NULL) {
        deedbox_panic("out of memory: %zu activities", count);
    }
    for (size_t i = 0; i < count; i++) {
        const deedbox_activity *activity = deedbox_activities[i];
        ret->ptr[i].name = given_away_string(&ctx, activity->name);
        ret->ptr[i].summary = given_away_string(&ctx, activity->summary);
        ret->ptr[i].input_schema = given_away_json(&ctx, deedbox_schema(&ctx, activity->input, true));
        ret->ptr[i].output_schema = given_away_json(&ctx, deedbox_schema(&ctx, activity->output, false));
    }
    deedbox_close(&ctx);
}

bool exports_deedbox_activity_activities_run(activity_string_t *activity, activity_string_t *input, activity_string_t *ret,
                                             exports_deedbox_activity_activities_failure_t *err)
{
    deedbox_context ctx;
    deedbox_open(&ctx, &host, NULL);
    /* A trap keeps what was printed in whole lines. */
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    deedbox_text text = deedbox_copy(&ctx, input->ptr, input->len);
    const char *name = kept(&ctx, *activity);
    activity_string_free(activity);
    activity_string_free(input);
    deedbox_text output = {0};
    deedbox_result failure = deedbox_run_named(&ctx, name, text, &output);
    if (failure == DEEDBOX_OK) {
        *ret = given_away(output);
    } else {
        *err = (exports_deedbox_activity_activities_failure_t){
            .code = given_away_string(&ctx, failure->code),
            .message = given_away_string(&ctx, failure->message),
            .kind = failure->retryable ? EXPORTS_DEEDBOX_ACTIVITY_ACTIVITIES_FAILURE_KIND_RETRYABLE
                                       : EXPORTS_DEEDBOX_ACTIVITY_ACTIVITIES_FAILURE_KIND_PERMANENT,
            .retry_after_ms = {failure->has_retry_after, failure->retry_after_ms},
            .details = given_away_json(&ctx, failure->details),
        };
    }
    fflush(stdout);
    bool succeeded = failure == DEEDBOX_OK;
    deedbox_close(&ctx);
    return succeeded;
}

#else

/* C has no empty files. */
extern int deedbox_component_is_for_wasm;

#endif
