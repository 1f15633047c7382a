/* Key derivation: BLAKE3 in derive_key mode over fields with their lengths. It must give what the host gives, to the bit. */

#include "deedbox_keys.h"

#include <string.h>

#include "../third_party/blake3/blake3.h"

static void add(blake3_hasher *hasher, const void *bytes, size_t size)
{
    uint8_t length[4] = {(uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16), (uint8_t)(size >> 24)};
    blake3_hasher_update(hasher, length, sizeof length);
    blake3_hasher_update(hasher, bytes, size);
}

static bool is_hexadecimal(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

const char *deedbox_run_id_problem(const char *run_id)
{
    if (run_id == NULL || *run_id == '\0') {
        return "a test context needs a run id, for its keys come from it: write a UUID into the test";
    }
    bool fits = strlen(run_id) == 36;
    for (size_t i = 0; fits && i < 36; i++) {
        bool is_hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        fits = is_hyphen ? run_id[i] == '-' : is_hexadecimal(run_id[i]);
    }
    return fits ? NULL : "this is not a run id: write a lower-case hyphenated UUID into the test";
}

deedbox_run_key deedbox_derive_run_key(deedbox_text tenant, deedbox_text run_id)
{
    blake3_hasher hasher;
    deedbox_run_key key;
    blake3_hasher_init_derive_key(&hasher, "deedbox 2026 run key");
    add(&hasher, tenant.data, tenant.size);
    add(&hasher, run_id.data, run_id.size);
    blake3_hasher_finalize(&hasher, key.bytes, sizeof key.bytes);
    return key;
}

bool deedbox_derive_subkey(const deedbox_run_key *run, deedbox_text name, deedbox_key *key)
{
    if (name.size < 1 || name.size > 256) {
        return false;
    }
    blake3_hasher hasher;
    uint8_t hash[32];
    blake3_hasher_init_derive_key(&hasher, "deedbox 2026 subkey");
    add(&hasher, run->bytes, sizeof run->bytes);
    add(&hasher, name.data, name.size);
    blake3_hasher_finalize(&hasher, hash, sizeof hash);
    *key = deedbox_key_text(hash);
    return true;
}

/* A UUID of version 8 and RFC 9562's variant. */
deedbox_key deedbox_key_text(const uint8_t hash[32])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t half[16];
    deedbox_key key;
    memcpy(half, hash, sizeof half);
    half[6] = (uint8_t)((half[6] & 0x0f) | 0x80);
    half[8] = (uint8_t)((half[8] & 0x3f) | 0x80);
    char *to = key.text;
    for (size_t i = 0; i < sizeof half; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *to++ = '-';
        }
        *to++ = digits[half[i] >> 4];
        *to++ = digits[half[i] & 15];
    }
    *to = '\0';
    return key;
}
