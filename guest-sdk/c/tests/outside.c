/* Messages, files, signals and the checkpoint. */

#include "check.h"

struct progress {
    int64_t done;
};
DEEDBOX_TYPE(progress_type, struct progress, DEEDBOX_FIELD(struct progress, done))

static void a_message_is_published_with_its_effect(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_context *ctx = deedbox_fake_context(fake);
    deedbox_published published;
    const deedbox_message message = {.subject = "orders.paid", .identity = DEEDBOX_BUSINESS("order-paid", "42"),
                                     .json = deedbox_json_string(ctx, "x")};
    CHECK(deedbox_publish(ctx, &message, &published) == DEEDBOX_OK);
    CHECK_STRING(published.stream, "TEST");
    CHECK(published.sequence == 1);
    const deedbox_message *sent = deedbox_fake_published(fake, 0);
    CHECK_STRING(sent->payload.data, "\"x\"");
    CHECK_STRING(sent->identity.operation, "order-paid");
    CHECK(sent->header_count == 1);
    deedbox_fake_refuse_message(fake, "message-refused", "the stream is full");
    deedbox_result failure = deedbox_publish(ctx, &message, NULL);
    CHECK_FAILED(failure, "message-refused", "the server refused the message: the stream is full");
    CHECK(failure->retryable);
    CHECK_FAILED(deedbox_publish(ctx, &(deedbox_message){0}, NULL), "invalid-request", "the message cannot be sent");
    CHECK(deedbox_fake_published_count(fake) == 2);
    deedbox_fake_free(fake);
}

static void a_file_is_written_with_its_effect(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_context *ctx = deedbox_fake_context(fake);
    deedbox_written written;
    CHECK(deedbox_write_file(ctx, "out/a.csv", deedbox_text_of("a\n"), DEEDBOX_NAMED("export"), &written) == DEEDBOX_OK);
    CHECK(written.source == DEEDBOX_SENT);
    CHECK_STRING(deedbox_fake_written(fake, 0)->path, "out/a.csv");
    CHECK_STRING(deedbox_fake_written(fake, 0)->bytes.data, "a\n");
    deedbox_fake_refuse_write(fake, "write-failed", "disk full");
    CHECK_FAILED(deedbox_write_file(ctx, "out/b", deedbox_text_of(""), (deedbox_identity){0}, NULL), "write-failed",
                 "the file was not written: disk full");
    CHECK_FAILED(deedbox_write_file(ctx, NULL, deedbox_text_of(""), (deedbox_identity){0}, NULL), "invalid-request", "");
    CHECK(deedbox_fake_file_count(fake) == 2);
    deedbox_fake_free(fake);
}

static void each_wait_gives_the_same_in_every_attempt(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_context *ctx = deedbox_fake_context(fake);
    const deedbox_signal *signal;
    struct progress progress;
    deedbox_fake_deliver(fake, "paid", "{\"done\":1,\"by\":\"x\"}");
    for (uint32_t attempt = 1; attempt <= 2; attempt++) {
        deedbox_fake_set_attempt(fake, attempt);
        CHECK(deedbox_wait_signal(ctx, "paid", &signal) == DEEDBOX_OK && signal->sequence == 1);
        CHECK(deedbox_signal_read(signal, &progress_type, &progress) == DEEDBOX_OK && progress.done == 1);
        CHECK(deedbox_wait_signal_for(ctx, "paid", 5, &signal) == DEEDBOX_OK && signal == NULL);
        CHECK(deedbox_poll_signal(ctx, "paid", &signal) == DEEDBOX_OK && signal == NULL);
        deedbox_fake_deliver(fake, "paid", "2");
    }
    CHECK(deedbox_poll_signal(ctx, "paid", &signal) == DEEDBOX_OK && signal->sequence == 2);
    CHECK_FAILED(deedbox_signal_read(signal, &progress_type, &progress), "signal-format", "payload: this is a number");
    CHECK_FAILED(deedbox_poll_signal(ctx, "a b", &signal), "signal-invalid-name", "the name of a signal");
    CHECK_FAILED(deedbox_poll_signal(ctx, "\xff", &signal), "signal-invalid-name", "the name of a signal");
    deedbox_fake_free(fake);
}

static void a_checkpoint_is_there_in_the_next_attempt(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    deedbox_context *ctx = deedbox_fake_context(fake);
    struct progress progress = {-1};
    bool found = true;
    CHECK(deedbox_load(ctx, &progress_type, &progress, &found) == DEEDBOX_OK && !found && progress.done == -1);
    CHECK(deedbox_save(ctx, &progress_type, &(struct progress){7}) == DEEDBOX_OK);
    CHECK_STRING(deedbox_fake_state(fake).data, "{\"done\":7}");
    deedbox_fake_set_attempt(fake, 2);
    CHECK(deedbox_load(ctx, &progress_type, &progress, &found) == DEEDBOX_OK && found && progress.done == 7);
    CHECK(deedbox_save_bytes(ctx, deedbox_text_of("no")) == DEEDBOX_OK);
    CHECK_FAILED(deedbox_load(ctx, &progress_type, &progress, &found), "checkpoint-format", "state: this is not JSON");
    deedbox_text large = {deedbox_alloc(ctx, 65537), 65537};
    CHECK_FAILED(deedbox_save_bytes(ctx, large), "checkpoint-too-large", "the state is larger than the host allows");
    deedbox_fake_free(fake);
}

static void an_attempt_sees_that_it_is_to_stop(void)
{
    deedbox_fake *fake = deedbox_fake_for_run(RUN_ID, NULL);
    CHECK(!deedbox_cancelled(deedbox_fake_context(fake)));
    deedbox_fake_cancel(fake);
    deedbox_fake_set_activity(fake, "charge");
    deedbox_fake_set_remaining_ms(fake, 5);
    deedbox_fake_set_max_attempts(fake, 9);
    deedbox_run run = deedbox_run_info(deedbox_fake_context(fake));
    CHECK(deedbox_cancelled(deedbox_fake_context(fake)) && run.remaining_ms == 5 && run.max_attempts == 9);
    CHECK_STRING(run.run_id, RUN_ID);
    CHECK_STRING(run.activity, "charge");
    deedbox_fake_free(fake);
}

const test outside_tests[] = {
    {"a message is published with its effect", a_message_is_published_with_its_effect},
    {"a file is written with its effect", a_file_is_written_with_its_effect},
    {"each wait gives the same in every attempt", each_wait_gives_the_same_in_every_attempt},
    {"a checkpoint is there in the next attempt", a_checkpoint_is_there_in_the_next_attempt},
    {"an attempt sees that it is to stop", an_attempt_sees_that_it_is_to_stop},
    {NULL, NULL},
};
