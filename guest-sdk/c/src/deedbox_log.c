/* What a person reads in the run's log. Standard output and standard error both go there. */

#include <stdio.h>
#include <stdlib.h>

#include "deedbox_host.h"

static void line(const char *before, const char *format, va_list arguments)
{
    /* In the order of the program, though standard output is buffered. */
    fflush(stdout);
    fputs(before, stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void deedbox_log(deedbox_level level, const char *format, ...)
{
    static const char *const names[] = {"DEBUG ", "INFO ", "WARN ", "ERROR "};
    va_list arguments;
    va_start(arguments, format);
    line(names[level], format, arguments);
    va_end(arguments);
}

_Noreturn void deedbox_panic(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    line("deedbox: ", format, arguments);
    va_end(arguments);
    abort();
}
