/* What the tests of the SDK share: a fact that does not hold is said with its place, and counted. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <string.h>

#include "deedbox.h"
#include "deedbox_testing.h"

#define RUN_ID "0190b1c2-0000-7000-8000-000000000001"

extern int failures_of_this_test;

#define CHECK(fact)                                                       \
    do {                                                                  \
        if (!(fact)) {                                                    \
            failures_of_this_test++;                                      \
            printf("%s:%d: does not hold: %s\n", __FILE__, __LINE__, #fact); \
        }                                                                 \
    } while (0)

#define CHECK_STRING(got, wanted) check_string(__FILE__, __LINE__, got, wanted)
/* The failure has this code and its message begins so. */
#define CHECK_FAILED(result, code, message) check_failed(__FILE__, __LINE__, result, code, message)

void check_string(const char *file, int line, const char *got, const char *wanted);
void check_failed(const char *file, int line, deedbox_result result, const char *code, const char *message);

typedef struct test {
    const char *fact;
    void (*run)(void);
} test;

/* Each ends with an empty one. */
extern const test key_tests[], input_tests[], http_tests[], outside_tests[];

#endif
