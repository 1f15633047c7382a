/*
 * The keys of a fake run, derived as the host derives them, so that a test can state them as text. Nothing here may be
 * random: an unstable key in a test hides the bug that the test is for.
 */
#ifndef DEEDBOX_KEYS_H
#define DEEDBOX_KEYS_H

#include "deedbox.h"

/* 36 characters and a zero byte. */
typedef struct deedbox_key {
    char text[37];
} deedbox_key;

typedef struct deedbox_run_key {
    uint8_t bytes[32];
} deedbox_run_key;

/* Why this is no run id, or NULL. */
const char *deedbox_run_id_problem(const char *run_id);
deedbox_run_key deedbox_derive_run_key(deedbox_text tenant, deedbox_text run_id);
/* False when the name is empty or longer than 256 bytes. */
bool deedbox_derive_subkey(const deedbox_run_key *run, deedbox_text name, deedbox_key *key);
deedbox_key deedbox_key_text(const uint8_t hash[32]);

#endif
