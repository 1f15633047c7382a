/* Escaping for URLs and for the bodies of HTML forms. The same pairs always give the same bytes, for the body is part of what
 * the ledger compares. */

#include <string.h>

#include "deedbox_host.h"

static bool is_letter_or_digit(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Gives the place behind what it wrote, at most three times the bytes. */
static char *escape(char *to, const char *from, const char *kept, bool plus_for_space)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *from != '\0'; from++) {
        unsigned char c = (unsigned char)*from;
        if (is_letter_or_digit(c) || strchr(kept, c) != NULL) {
            *to++ = (char)c;
        } else if (c == ' ' && plus_for_space) {
            *to++ = '+';
        } else {
            *to++ = '%';
            *to++ = digits[c >> 4];
            *to++ = digits[c & 15];
        }
    }
    return to;
}

static size_t escaped_size(const char *string)
{
    size_t size = strlen(string);
    if (size > SIZE_MAX / 4) {
        deedbox_panic("out of memory: a string of %zu bytes", size);
    }
    return size * 3;
}

const char *deedbox_url_escape(deedbox_context *ctx, const char *string)
{
    char *escaped = deedbox_alloc(ctx, escaped_size(string) + 1);
    escape(escaped, string, "-._~", false);
    return escaped;
}

const char *deedbox_form(deedbox_context *ctx, const char *const pairs[][2], size_t count)
{
    size_t size = 1;
    for (size_t i = 0; i < count; i++) {
        size += escaped_size(pairs[i][0]) + escaped_size(pairs[i][1]) + 2;
    }
    char *form = deedbox_alloc(ctx, size);
    char *to = form;
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            *to++ = '&';
        }
        to = escape(to, pairs[i][0], "*-._", true);
        *to++ = '=';
        to = escape(to, pairs[i][1], "*-._", true);
    }
    return form;
}
