/* The call around each activity: JSON in, JSON out. Whatever a caller sent ends as a failure that names the place, never as
 * a trap. */

#include <string.h>

#include "deedbox_host.h"

static deedbox_result unknown(deedbox_context *ctx, const char *name)
{
    const char *names = "";
    for (const deedbox_activity *const *it = deedbox_activities; *it != NULL; it++) {
        names = deedbox_format(ctx, "%s%s%s", names, *names == '\0' ? "" : ", ", (*it)->name);
    }
    return deedbox_permanent(ctx, "unknown-activity", "this module has no activity \"%s\"; it has: %s", name, names);
}

static deedbox_result call(deedbox_context *ctx, const deedbox_activity *activity, deedbox_text text, deedbox_text *written)
{
    const deedbox_json *json;
    void *input = deedbox_alloc(ctx, activity->input->size);
    void *output = deedbox_alloc(ctx, activity->output->size);
    DEEDBOX_TRY(deedbox_parse_as(ctx, text, &json, "invalid-input", "input"));
    DEEDBOX_TRY(deedbox_read(ctx, json, activity->input, input, "invalid-input", "input", true));
    DEEDBOX_TRY(activity->run(ctx, input, output));
    deedbox_result unwritable = deedbox_print(ctx, deedbox_encode(ctx, activity->output, output), written);
    if (unwritable != DEEDBOX_OK) {
        return deedbox_permanent(ctx, "invalid-output", "%s", unwritable->message);
    }
    return DEEDBOX_OK;
}

deedbox_result deedbox_run_named(deedbox_context *ctx, const char *name, deedbox_text input, deedbox_text *output)
{
    for (const deedbox_activity *const *it = deedbox_activities; *it != NULL; it++) {
        if (strcmp((*it)->name, name) == 0) {
            return call(ctx, *it, input, output);
        }
    }
    return unknown(ctx, name);
}
