/* The keys of a fake are those of the host, by the vectors of the repository. */

#include <stdlib.h>

#include "check.h"

static deedbox_text vectors(deedbox_context *ctx)
{
    FILE *file = fopen("../key-vectors.json", "rb");
    static char bytes[1 << 18];
    size_t size = file == NULL ? 0 : fread(bytes, 1, sizeof bytes, file);
    if (file != NULL) {
        fclose(file);
    }
    CHECK(size > 0 && size < sizeof bytes);
    return deedbox_copy(ctx, bytes, size);
}

static const char *member(const deedbox_json *entry, const char *name)
{
    return deedbox_json_as_string(deedbox_json_get(entry, name));
}

static bool is_of_test_tenant(const deedbox_json *entry)
{
    const char *tenant = member(entry, "tenant");
    return tenant != NULL && strcmp(tenant, "test") == 0;
}

static void every_vector_holds(void)
{
    deedbox_fake *reader = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_context *ctx = deedbox_fake_context(reader);
    const deedbox_json *all;
    size_t run_keys = 0, subkeys = 0;
    CHECK(deedbox_parse(ctx, vectors(ctx), &all) == DEEDBOX_OK);
    const deedbox_json *list = deedbox_json_get(all, "run_keys");
    for (size_t i = 0; i < deedbox_json_size(list); i++) {
        const deedbox_json *entry = deedbox_json_at(list, i);
        if (is_of_test_tenant(entry)) {
            deedbox_fake *fake = deedbox_fake_for_run(member(entry, "run_id"), NULL);
            CHECK_STRING(deedbox_idempotency_key(deedbox_fake_context(fake)), member(entry, "text"));
            deedbox_fake_free(fake);
            run_keys++;
        }
    }
    list = deedbox_json_get(all, "subkeys");
    for (size_t i = 0; i < deedbox_json_size(list); i++) {
        const deedbox_json *entry = deedbox_json_at(list, i);
        deedbox_text name;
        const char *key = NULL;
        if (is_of_test_tenant(entry) && deedbox_json_is_text(deedbox_json_get(entry, "name"), &name)) {
            deedbox_fake *fake = deedbox_fake_for_run(member(entry, "run_id"), NULL);
            CHECK(deedbox_subkey_of(deedbox_fake_context(fake), name, &key) == DEEDBOX_OK);
            CHECK_STRING(key, member(entry, "text"));
            deedbox_fake_free(fake);
            subkeys++;
        }
    }
    CHECK(run_keys == 3);
    CHECK(subkeys == 13);
    deedbox_fake_free(reader);
}

static void a_name_that_is_refused_is_an_error(void)
{
    static const size_t sizes[] = {0, 257, 1000};
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_context *ctx = deedbox_fake_context(fake);
    const char *key = "not touched";
    for (size_t i = 0; i < 3; i++) {
        char *name = deedbox_alloc(ctx, sizes[i] + 1);
        memset(name, 'x', sizes[i]);
        CHECK_FAILED(deedbox_subkey(ctx, name, &key), "invalid-name", "the name of a subkey has 1 to 256 bytes");
        CHECK(key == NULL);
    }
    CHECK_FAILED(deedbox_subkey(ctx, "\xff", &key), "invalid-name", "");
    deedbox_fake_free(fake);
}

static void there_is_no_context_without_a_run_id(void)
{
    static const char *const wrong[] = {"", "1", "0190B1C2-0000-7000-8000-000000000001",
                                        "0190b1c200007000800000000000000001xx", "0190b1c2-0000-7000-8000-00000000000g"};
    const char *problem = NULL;
    CHECK(deedbox_fake_for_run(NULL, &problem) == NULL);
    CHECK(strstr(problem, "needs a run id") != NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(deedbox_fake_for_run(wrong[i], &problem) == NULL);
        CHECK(strstr(problem, "write a") != NULL);
    }
}

static void another_attempt_has_the_same_keys(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_context *ctx = deedbox_fake_context(fake);
    const char *first = deedbox_idempotency_key(ctx);
    deedbox_fake_set_attempt(fake, 2);
    CHECK(deedbox_run_info(ctx).attempt == 2);
    CHECK_STRING(deedbox_idempotency_key(ctx), first);
    deedbox_fake_free(fake);
}

const test key_tests[] = {
    {"every key is that of the vectors", every_vector_holds},
    {"a name that is empty, too long or not UTF-8 is an error", a_name_that_is_refused_is_an_error},
    {"there is no context without a run id", there_is_no_context_without_a_run_id},
    {"another attempt has the same keys", another_attempt_has_the_same_keys},
    {NULL, NULL},
};
