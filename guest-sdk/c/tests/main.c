/* Runs every test and says how many held. */

#include "check.h"

int failures_of_this_test;

void check_string(const char *file, int line, const char *got, const char *wanted)
{
    if (got == NULL || strcmp(got, wanted) != 0) {
        failures_of_this_test++;
        printf("%s:%d: got    %s\n%s:%d: wanted %s\n", file, line, got == NULL ? "(none)" : got, file, line, wanted);
    }
}

void check_failed(const char *file, int line, deedbox_result result, const char *code, const char *message)
{
    if (result == DEEDBOX_OK) {
        check_string(file, line, NULL, code);
        return;
    }
    check_string(file, line, result->code, code);
    if (strncmp(result->message, message, strlen(message)) != 0) {
        check_string(file, line, result->message, message);
    }
}

int main(void)
{
    const test *const all[] = {key_tests, input_tests, http_tests, outside_tests};
    int passed = 0, failed = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (const test *it = all[i]; it->fact != NULL; it++) {
            failures_of_this_test = 0;
            it->run();
            printf("%s %s\n", failures_of_this_test == 0 ? "ok    " : "FAILED", it->fact);
            failures_of_this_test == 0 ? passed++ : failed++;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
