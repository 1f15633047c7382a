/*
 * Running an activity in a unit test of the machine's own C compiler, without a host.
 *
 * A fake answers requests from a script and remembers what was sent. It opens no socket, and it hands out only keys that a
 * host would derive from the run id that the test wrote down: never a random one. What it gives lives until it is freed.
 */
#ifndef DEEDBOX_TESTING_H
#define DEEDBOX_TESTING_H

#include "deedbox.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct deedbox_fake deedbox_fake;

/* The first of three attempts of the run with this id, a lower-case hyphenated UUID. NULL when it is none, for there is no
 * key to hand out then; `problem`, if it is not NULL, then says why. */
deedbox_fake *deedbox_fake_for_run(const char *run_id, const char **problem);
void deedbox_fake_free(deedbox_fake *fake);

/* For calling a function of the module directly. */
deedbox_context *deedbox_fake_context(deedbox_fake *fake);
/* Runs an activity of the module on a JSON text, as the host does. The output is a JSON text. */
deedbox_result deedbox_fake_run(deedbox_fake *fake, const char *activity, const char *input, const char **output);

/* What a request gets. */
typedef struct deedbox_answer {
    uint16_t status;      /* 0: 200 */
    const char *json;     /* a JSON text, with its content type; or */
    deedbox_text body;
    const deedbox_header *headers;
    size_t header_count;
    deedbox_source source;
    bool without_body; /* as from a record that has none */
    const char *error; /* no answer but this, a code such as "timed-out"; … */
    const char *text;  /* … with the host's text */
} deedbox_answer;

/* Adds the answer to the next request that has none yet. A request without one aborts the test and is named. */
void deedbox_fake_answer(deedbox_fake *fake, const deedbox_answer *answer);
/* The next message, or the next write, that is not refused yet fails with this code, such as "message-refused". */
void deedbox_fake_refuse_message(deedbox_fake *fake, const char *error, const char *text);
void deedbox_fake_refuse_write(deedbox_fake *fake, const char *error, const char *text);
/* Delivers a signal; the payload is a JSON text. */
void deedbox_fake_deliver(deedbox_fake *fake, const char *name, const char *payload);
/* Makes this the attempt of that number, with the saved state of the attempts before and the signals they were given. */
void deedbox_fake_set_attempt(deedbox_fake *fake, uint32_t attempt);
void deedbox_fake_set_max_attempts(deedbox_fake *fake, uint32_t attempts);
void deedbox_fake_set_activity(deedbox_fake *fake, const char *name);
void deedbox_fake_set_remaining_ms(deedbox_fake *fake, uint64_t ms);
/* Asks the attempt to stop. */
void deedbox_fake_cancel(deedbox_fake *fake);

/* What was sent, published and written so far, in order, as the host would have got it; NULL when there was no such one. A
 * request's body is its bytes, also when it was given as JSON or as a form. */
size_t deedbox_fake_sent_count(const deedbox_fake *fake);
const deedbox_request *deedbox_fake_sent(const deedbox_fake *fake, size_t index);
size_t deedbox_fake_published_count(const deedbox_fake *fake);
const deedbox_message *deedbox_fake_published(const deedbox_fake *fake, size_t index);

typedef struct deedbox_fake_file {
    const char *path;
    deedbox_text bytes;
    deedbox_identity identity;
} deedbox_fake_file;

size_t deedbox_fake_file_count(const deedbox_fake *fake);
const deedbox_fake_file *deedbox_fake_written(const deedbox_fake *fake, size_t index);
/* The saved state; no bytes when there is none. */
deedbox_text deedbox_fake_state(const deedbox_fake *fake);

/* Whether these are the same JSON, whatever the order of members. Both are JSON texts. */
bool deedbox_fake_same_json(deedbox_fake *fake, const char *a, const char *b);

#ifdef __cplusplus
}
#endif

#endif
