/* UTF-8. The host takes no string that is something else, so what leaves is checked, and what is for people is mended. */

#include <string.h>

#include "deedbox_host.h"

/* How many bytes the character here has; 0 when it is none. RFC 3629: no overlong forms, no surrogates, up to U+10FFFF. */
static size_t character(const unsigned char *at, size_t left)
{
    unsigned char first = at[0];
    if (first < 0x80) {
        return 1;
    }
    size_t size = first >= 0xc2 && first <= 0xdf ? 2 : (first & 0xf0) == 0xe0 ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 0;
    if (size == 0 || size > left) {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool outside = (first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] > 0x9f) || (first == 0xf0 && at[1] < 0x90) ||
                   (first == 0xf4 && at[1] > 0x8f);
    return outside ? 0 : size;
}

bool deedbox_is_utf8(const char *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t taken = character((const unsigned char *)bytes + at, size - at);
        if (taken == 0) {
            return false;
        }
        at += taken;
    }
    return true;
}

const char *deedbox_as_utf8(deedbox_context *ctx, const char *string)
{
    if (string == NULL) {
        return "";
    }
    size_t size = strlen(string);
    if (deedbox_is_utf8(string, size)) {
        return string;
    }
    if (size > (SIZE_MAX - 1) / 3) {
        deedbox_panic("out of memory: a string of %zu bytes", size);
    }
    char *mended = deedbox_alloc(ctx, size * 3 + 1);
    size_t to = 0;
    for (size_t from = 0; from < size;) {
        size_t taken = character((const unsigned char *)string + from, size - from);
        memcpy(mended + to, taken == 0 ? "\xef\xbf\xbd" : string + from, taken == 0 ? 3 : taken);
        to += taken == 0 ? 3 : taken;
        from += taken == 0 ? 1 : taken;
    }
    return mended;
}
