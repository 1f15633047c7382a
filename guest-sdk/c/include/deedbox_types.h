/*
 * Types as data: a table says where each member of a struct is and what it is. From that one table come reading JSON into
 * the struct, writing it as JSON, and its JSON Schema. A table that does not fit its struct does not compile.
 *
 * deedbox.h includes this file.
 */
#ifndef DEEDBOX_TYPES_H
#define DEEDBOX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an activity is handed. It owns all memory of the attempt. */
typedef struct deedbox_context deedbox_context;

/* A JSON value. It is yyjson's, so an author who includes yyjson.h may use all of that library on it. */
typedef struct yyjson_mut_val deedbox_json;

/* Bytes, or a string with its length. */
typedef struct deedbox_text {
    const char *data;
    size_t size;
} deedbox_text;

/* The bytes of a string that ends with a zero byte. NULL gives no bytes. */
deedbox_text deedbox_text_of(const char *string);

typedef enum deedbox_kind {
    DEEDBOX_KIND_STRING,   /* const char *: a string without zero bytes */
    DEEDBOX_KIND_TEXT,     /* deedbox_text: any string */
    DEEDBOX_KIND_SIGNED,   /* an integer of the type's size */
    DEEDBOX_KIND_UNSIGNED, /* the same, from 0 */
    DEEDBOX_KIND_REAL,     /* double */
    DEEDBOX_KIND_BOOLEAN,  /* bool */
    DEEDBOX_KIND_JSON,     /* const deedbox_json *: anything */
    DEEDBOX_KIND_STRUCT
} deedbox_kind;

typedef struct deedbox_field deedbox_field;

typedef struct deedbox_type {
    deedbox_kind kind;
    size_t size;                 /* of the C type */
    const deedbox_field *fields; /* of a struct */
    size_t field_count;
} deedbox_type;

typedef enum deedbox_presence {
    DEEDBOX_REQUIRED,      /* the value itself */
    DEEDBOX_OPTIONAL_FORM, /* NULL when it is absent or null; else a pointer to the value, or a string or JSON value */
    DEEDBOX_LIST_FORM,     /* a pointer to the first element, with a count */
    DEEDBOX_OPTIONAL_LIST_FORM
} deedbox_presence;

struct deedbox_field {
    const char *name; /* in JSON */
    const deedbox_type *type;
    size_t offset;
    deedbox_presence form;
    size_t count_offset; /* of a list: where its count is, a size_t */
};

/* One value, not in a struct: for an activity whose input or output is that. */
extern const deedbox_type deedbox_string_type, deedbox_text_type, deedbox_bool_type, deedbox_double_type, deedbox_json_type;
extern const deedbox_type deedbox_int8_type, deedbox_int16_type, deedbox_int32_type, deedbox_int64_type;
extern const deedbox_type deedbox_uint8_type, deedbox_uint16_type, deedbox_uint32_type, deedbox_uint64_type;

typedef const char *deedbox_string_type_struct;
typedef deedbox_text deedbox_text_type_struct;
typedef bool deedbox_bool_type_struct;
typedef double deedbox_double_type_struct;
typedef const deedbox_json *deedbox_json_type_struct;
typedef int64_t deedbox_int64_type_struct;
typedef uint64_t deedbox_uint64_type_struct;

/* Describes a struct:
 *     DEEDBOX_TYPE(order_type, struct order, DEEDBOX_FIELD(struct order, number), DEEDBOX_FIELD(struct order, amount_cents))
 * As an input it refuses members that it does not know; in answers, signals and checkpoints it passes over them. */
#define DEEDBOX_TYPE(type_name, c_type, ...)                                                                 \
    typedef c_type type_name##_struct;                                                                       \
    static const deedbox_field type_name##_fields[] = {__VA_ARGS__};                                         \
    static const deedbox_type type_name = {DEEDBOX_KIND_STRUCT, sizeof(c_type), type_name##_fields,          \
                                           sizeof(type_name##_fields) / sizeof(type_name##_fields[0])};

/* A string (const char *), a deedbox_text, a number, a bool or a JSON value (const deedbox_json *) that must be there. */
#define DEEDBOX_FIELD(c_type, member) DEEDBOX_FIELD_AS(c_type, member, #member)
/* The same under another name in JSON. */
#define DEEDBOX_FIELD_AS(c_type, member, json_name) \
    {json_name, DEEDBOX_TYPE_OF_VALUE(((c_type *)0)->member), offsetof(c_type, member), DEEDBOX_REQUIRED, 0}

/* One that may be absent or null, which NULL says: a string, a JSON value, or a pointer such as const int64_t * or
 * const bool *. */
#define DEEDBOX_OPTIONAL(c_type, member) DEEDBOX_OPTIONAL_AS(c_type, member, #member)
#define DEEDBOX_OPTIONAL_AS(c_type, member, json_name) \
    {json_name, DEEDBOX_TYPE_OF_OPTION(((c_type *)0)->member), offsetof(c_type, member), DEEDBOX_OPTIONAL_FORM, 0}

/* A struct in this one, described by `type`. */
#define DEEDBOX_STRUCT(c_type, member, type)                                                              \
    {#member, &type, offsetof(c_type, member) + DEEDBOX_SAME(&((c_type *)0)->member, type##_struct *), \
     DEEDBOX_REQUIRED, 0}
/* A pointer to one, NULL when it is absent or null. */
#define DEEDBOX_OPTIONAL_STRUCT(c_type, member, type)                                                            \
    {#member, &type, offsetof(c_type, member) + DEEDBOX_SAME(((c_type *)0)->member, const type##_struct *), \
     DEEDBOX_OPTIONAL_FORM, 0}

/* A list: `member` points to its first element and `count` is a size_t. Strings, texts, JSON values and numbers. */
#define DEEDBOX_LIST(c_type, member, count) DEEDBOX_LIST_OF(c_type, member, count, DEEDBOX_LIST_FORM)
#define DEEDBOX_OPTIONAL_LIST(c_type, member, count) DEEDBOX_LIST_OF(c_type, member, count, DEEDBOX_OPTIONAL_LIST_FORM)
#define DEEDBOX_LIST_OF(c_type, member, count, form)                                            \
    {#member, DEEDBOX_TYPE_OF_LIST(((c_type *)0)->member), offsetof(c_type, member), form, \
     offsetof(c_type, count) + DEEDBOX_SAME(&((c_type *)0)->count, size_t *)}

/* A list of structs. */
#define DEEDBOX_STRUCTS(c_type, member, count, type) DEEDBOX_STRUCTS_OF(c_type, member, count, type, DEEDBOX_LIST_FORM)
#define DEEDBOX_OPTIONAL_STRUCTS(c_type, member, count, type) \
    DEEDBOX_STRUCTS_OF(c_type, member, count, type, DEEDBOX_OPTIONAL_LIST_FORM)
#define DEEDBOX_STRUCTS_OF(c_type, member, count, type, form)                                                          \
    {#member, &type, offsetof(c_type, member) + DEEDBOX_SAME(((c_type *)0)->member, const type##_struct *), form, \
     offsetof(c_type, count) + DEEDBOX_SAME(&((c_type *)0)->count, size_t *)}

/* 0, or an error of the compiler when the expression has another type. */
#define DEEDBOX_SAME(expression, c_type) (0 * sizeof(char[_Generic((expression), c_type: 1)]))

#define DEEDBOX_TYPE_OF_VALUE(value)             \
    _Generic((value),                            \
        const char *: &deedbox_string_type,      \
        deedbox_text: &deedbox_text_type,        \
        bool: &deedbox_bool_type,                \
        double: &deedbox_double_type,            \
        const deedbox_json *: &deedbox_json_type, \
        signed char: &deedbox_int8_type,         \
        short: &deedbox_int16_type,              \
        int: &deedbox_int32_type,                \
        long: DEEDBOX_LONG_TYPE,                 \
        long long: &deedbox_int64_type,          \
        unsigned char: &deedbox_uint8_type,      \
        unsigned short: &deedbox_uint16_type,    \
        unsigned int: &deedbox_uint32_type,      \
        unsigned long: DEEDBOX_ULONG_TYPE,       \
        unsigned long long: &deedbox_uint64_type)

#define DEEDBOX_TYPE_OF_OPTION(value)             \
    _Generic((value),                             \
        const char *: &deedbox_string_type,       \
        const deedbox_json *: &deedbox_json_type, \
        const deedbox_text *: &deedbox_text_type, \
        DEEDBOX_POINTERS_TO_NUMBERS)

#define DEEDBOX_TYPE_OF_LIST(value)                      \
    _Generic((value),                                    \
        const char *const *: &deedbox_string_type,       \
        const deedbox_json *const *: &deedbox_json_type, \
        const deedbox_text *: &deedbox_text_type,        \
        DEEDBOX_POINTERS_TO_NUMBERS)

#define DEEDBOX_POINTERS_TO_NUMBERS              \
    const bool *: &deedbox_bool_type,            \
    const double *: &deedbox_double_type,        \
    const short *: &deedbox_int16_type,          \
    const int *: &deedbox_int32_type,            \
    const long *: DEEDBOX_LONG_TYPE,             \
    const long long *: &deedbox_int64_type,      \
    const unsigned short *: &deedbox_uint16_type, \
    const unsigned int *: &deedbox_uint32_type,  \
    const unsigned long *: DEEDBOX_ULONG_TYPE,   \
    const unsigned long long *: &deedbox_uint64_type

/* 32 bits in wasm, 64 in most native tests. */
#define DEEDBOX_LONG_TYPE (sizeof(long) == 8 ? &deedbox_int64_type : &deedbox_int32_type)
#define DEEDBOX_ULONG_TYPE (sizeof(long) == 8 ? &deedbox_uint64_type : &deedbox_uint32_type)

/* ---- Reading and writing with a type ---- */

/* The value as JSON. Strings that are not UTF-8 and numbers that are not finite are found out when it is written. */
deedbox_json *deedbox_encode(deedbox_context *ctx, const deedbox_type *type, const void *value);
/* Fails with `invalid-json` and the place, for example `value.lines[2].amount`. Passes over unknown members. */
const struct deedbox_failure *deedbox_decode(deedbox_context *ctx, const deedbox_json *json, const deedbox_type *type,
                                             void *value);
/* Fails with `invalid-json`. */
const struct deedbox_failure *deedbox_parse(deedbox_context *ctx, deedbox_text text, const deedbox_json **json);
/* Compact JSON, with a zero byte behind it. Fails with `invalid-json` for what JSON cannot say. */
const struct deedbox_failure *deedbox_print(deedbox_context *ctx, const deedbox_json *json, deedbox_text *text);
/* The JSON Schema (2020-12) of what is read into the type, as JSON. `closed`: unknown members are refused. */
deedbox_json *deedbox_schema(deedbox_context *ctx, const deedbox_type *type, bool closed);

/* ---- JSON without a type ---- */

deedbox_json *deedbox_json_null(deedbox_context *ctx);
deedbox_json *deedbox_json_bool(deedbox_context *ctx, bool value);
deedbox_json *deedbox_json_int(deedbox_context *ctx, int64_t value);
deedbox_json *deedbox_json_uint(deedbox_context *ctx, uint64_t value);
deedbox_json *deedbox_json_double(deedbox_context *ctx, double value);
/* These copy the string. NULL gives null. */
deedbox_json *deedbox_json_string(deedbox_context *ctx, const char *string);
deedbox_json *deedbox_json_text(deedbox_context *ctx, deedbox_text text);
deedbox_json *deedbox_json_array(deedbox_context *ctx);
deedbox_json *deedbox_json_object(deedbox_context *ctx);
/* A value belongs into one array or object, once. The name is copied; one that is there already is replaced. */
void deedbox_json_append(deedbox_json *array, deedbox_json *value);
void deedbox_json_set(deedbox_context *ctx, deedbox_json *object, const char *name, deedbox_json *value);
void deedbox_json_set_text(deedbox_context *ctx, deedbox_json *object, deedbox_text name, deedbox_json *value);

/* The member of an object, or the element of an array; NULL when there is none or it is something else. */
const deedbox_json *deedbox_json_get(const deedbox_json *object, const char *name);
const deedbox_json *deedbox_json_at(const deedbox_json *array, size_t index);
/* How many elements or members. */
size_t deedbox_json_size(const deedbox_json *json);
/* Each gives true and the value when it is one of that type. */
bool deedbox_json_is_int(const deedbox_json *json, int64_t *value);
bool deedbox_json_is_text(const deedbox_json *json, deedbox_text *value);
/* The string; NULL when it is something else or holds a zero byte. */
const char *deedbox_json_as_string(const deedbox_json *json);

#ifdef __cplusplus
}
#endif

#endif
