/* The types of single values, and the JSON Schema of a type. */

#include "deedbox_host.h"

/* A type may hold itself through a pointer: from this depth on its schema takes anything. */
#define MAX_DEPTH 8

const deedbox_type deedbox_string_type = {DEEDBOX_KIND_STRING, sizeof(const char *), NULL, 0};
const deedbox_type deedbox_text_type = {DEEDBOX_KIND_TEXT, sizeof(deedbox_text), NULL, 0};
const deedbox_type deedbox_bool_type = {DEEDBOX_KIND_BOOLEAN, sizeof(bool), NULL, 0};
const deedbox_type deedbox_double_type = {DEEDBOX_KIND_REAL, sizeof(double), NULL, 0};
const deedbox_type deedbox_json_type = {DEEDBOX_KIND_JSON, sizeof(const deedbox_json *), NULL, 0};
const deedbox_type deedbox_int8_type = {DEEDBOX_KIND_SIGNED, 1, NULL, 0};
const deedbox_type deedbox_int16_type = {DEEDBOX_KIND_SIGNED, 2, NULL, 0};
const deedbox_type deedbox_int32_type = {DEEDBOX_KIND_SIGNED, 4, NULL, 0};
const deedbox_type deedbox_int64_type = {DEEDBOX_KIND_SIGNED, 8, NULL, 0};
const deedbox_type deedbox_uint8_type = {DEEDBOX_KIND_UNSIGNED, 1, NULL, 0};
const deedbox_type deedbox_uint16_type = {DEEDBOX_KIND_UNSIGNED, 2, NULL, 0};
const deedbox_type deedbox_uint32_type = {DEEDBOX_KIND_UNSIGNED, 4, NULL, 0};
const deedbox_type deedbox_uint64_type = {DEEDBOX_KIND_UNSIGNED, 8, NULL, 0};

static deedbox_json *of(deedbox_context *ctx, const deedbox_type *type, bool closed, size_t depth);

static void say_type(deedbox_context *ctx, deedbox_json *schema, const char *name, bool or_null)
{
    if (!or_null) {
        deedbox_json_set(ctx, schema, "type", deedbox_json_string(ctx, name));
        return;
    }
    deedbox_json *both = deedbox_json_array(ctx);
    deedbox_json_append(both, deedbox_json_string(ctx, name));
    deedbox_json_append(both, deedbox_json_string(ctx, "null"));
    deedbox_json_set(ctx, schema, "type", both);
}

static const char *type_name(deedbox_kind kind)
{
    switch (kind) {
    case DEEDBOX_KIND_STRING:
    case DEEDBOX_KIND_TEXT: return "string";
    case DEEDBOX_KIND_SIGNED:
    case DEEDBOX_KIND_UNSIGNED: return "integer";
    case DEEDBOX_KIND_REAL: return "number";
    case DEEDBOX_KIND_BOOLEAN: return "boolean";
    case DEEDBOX_KIND_STRUCT: return "object";
    case DEEDBOX_KIND_JSON: break;
    }
    return NULL;
}

static void say_limits(deedbox_context *ctx, const deedbox_type *type, deedbox_json *schema)
{
    bool is_signed = type->kind == DEEDBOX_KIND_SIGNED;
    if (!is_signed && type->kind != DEEDBOX_KIND_UNSIGNED) {
        return;
    }
    uint64_t most = UINT64_MAX >> (64 - type->size * 8 + (is_signed ? 1 : 0));
    deedbox_json_set(ctx, schema, "minimum", deedbox_json_int(ctx, is_signed ? -(int64_t)most - 1 : 0));
    deedbox_json_set(ctx, schema, "maximum", deedbox_json_uint(ctx, most));
}

static deedbox_json *of_field(deedbox_context *ctx, const deedbox_field *field, bool closed, size_t depth)
{
    bool or_null = field->form == DEEDBOX_OPTIONAL_FORM || field->form == DEEDBOX_OPTIONAL_LIST_FORM;
    deedbox_json *schema;
    if (field->form == DEEDBOX_LIST_FORM || field->form == DEEDBOX_OPTIONAL_LIST_FORM) {
        schema = deedbox_json_object(ctx);
        say_type(ctx, schema, "array", or_null);
        deedbox_json_set(ctx, schema, "items", of(ctx, field->type, closed, depth + 1));
        return schema;
    }
    schema = of(ctx, field->type, closed, depth + 1);
    if (or_null && deedbox_json_get(schema, "type") != NULL) {
        say_type(ctx, schema, type_name(field->type->kind), true);
    }
    return schema;
}

static deedbox_json *of(deedbox_context *ctx, const deedbox_type *type, bool closed, size_t depth)
{
    deedbox_json *schema = deedbox_json_object(ctx);
    if (type->kind == DEEDBOX_KIND_JSON || depth > MAX_DEPTH) {
        return schema;
    }
    say_type(ctx, schema, type_name(type->kind), false);
    say_limits(ctx, type, schema);
    if (type->kind != DEEDBOX_KIND_STRUCT) {
        return schema;
    }
    deedbox_json *members = deedbox_json_object(ctx);
    deedbox_json *required = deedbox_json_array(ctx);
    for (size_t i = 0; i < type->field_count; i++) {
        const deedbox_field *field = &type->fields[i];
        deedbox_json_set(ctx, members, field->name, of_field(ctx, field, closed, depth));
        if (field->form == DEEDBOX_REQUIRED || field->form == DEEDBOX_LIST_FORM) {
            deedbox_json_append(required, deedbox_json_string(ctx, field->name));
        }
    }
    deedbox_json_set(ctx, schema, "properties", members);
    deedbox_json_set(ctx, schema, "required", required);
    if (closed) {
        deedbox_json_set(ctx, schema, "additionalProperties", deedbox_json_bool(ctx, false));
    }
    return schema;
}

deedbox_json *deedbox_schema(deedbox_context *ctx, const deedbox_type *type, bool closed)
{
    deedbox_json *schema = of(ctx, type, closed, 0);
    deedbox_json_set(ctx, schema, "$schema", deedbox_json_string(ctx, "https://json-schema.org/draft/2020-12/schema"));
    return schema;
}
