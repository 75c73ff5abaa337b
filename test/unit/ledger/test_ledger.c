/* What was committed is there after any crash, whatever was not is cut and told; files rotate, are dropped and change
 * keys, and the log verifies all the same. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "logs.h"

#define FIRST "000000000001.log"

static int count_line(void *arg, const struct ledger_line *l) {
        (void) l;
        ++*(unsigned *) arg;
        return 0;
}

static unsigned count(const char *tenant) {
        struct err err = { 0 };
        unsigned n = 0;

        assert_int_equal(ledger_each(logs_dir, tenant, 1, count_line, &n, &err), 0);
        return n;
}

static bool log_has(const char *tenant, const char *file, const char *text) {
        size_t n;
        AUTO_FREE char *all = logs_read(tenant, file, &n);

        return memmem(all, n, text, strlen(text)) != NULL;
}

static void committed_records_verify_and_count_from_one(void **state) {
        struct ledger *l = logs_open(0);
        struct ledger_verdict v;

        (void) state;
        logs_fill(l, "acme", 10, 3);
        logs_fill(l, "other", 2, 1);
        (void) ledger_free(l);
        v = logs_verify("acme");
        assert_true(v.ok);
        assert_int_equal(v.size, 11); /* the first says that the log was started */
        assert_int_equal(count("acme"), 11);
        assert_int_equal(count("other"), 3);
        assert_true(log_has("acme", FIRST, "\"event_code\":\"log.started\""));
        assert_false(log_has("other", FIRST, "acme")); /* one chain per tenant */
}

static void what_was_not_committed_never_happened(void **state) {
        struct ledger *l = logs_open(0);
        struct audit_event ev;
        struct err err = { 0 };
        uint64_t seq;

        (void) state;
        logs_fill(l, "acme", 3, 1);
        audit_event_init(&ev, AUDIT_ADMIN, "acme", "");
        assert_int_equal(ledger_append(l, &ev, &seq, &err), 0);
        assert_int_equal(seq, 5);
        ledger_undo(l);
        assert_int_equal(ledger_append(l, &ev, &seq, &err), 0);
        assert_int_equal(seq, 5); /* the number was not used up */
        (void) ledger_free(l);
        assert_true(logs_verify("acme").ok);
        assert_int_equal(logs_verify("acme").size, 4);
}

/* Every prefix of the unfinished part, as a crash of the machine may leave it: also none of it. */
static void torn_tail_is_cut_and_recorded_at_every_length(void **state) {
        size_t n, tail;
        AUTO_FREE char *before = NULL, *after = NULL;
        struct ledger *l = logs_open(0);
        size_t h0, h1;
        AUTO_FREE char *head0 = NULL, *head1 = NULL;

        (void) state;
        logs_fill(l, "acme", 4, 1);
        before = logs_read("acme", FIRST, &n);
        head0 = logs_read("acme", "head.0", &h0);
        head1 = logs_read("acme", "head.1", &h1);
        logs_fill(l, "acme", 2, 2);
        after = logs_read("acme", FIRST, &tail);
        (void) ledger_free(l);
        for (size_t len = n; len <= tail; len += 101) {
                logs_write("acme", FIRST, after, len);
                logs_write("acme", "head.0", head0, h0);
                logs_write("acme", "head.1", head1, h1);
                l = logs_open(0);
                logs_fill(l, "acme", 1, 1);
                (void) ledger_free(l);
                assert_true(logs_verify("acme").ok);
                assert_int_equal(log_has("acme", FIRST, "\"event_code\":\"log.cut\""), len > n);
                assert_int_equal(logs_verify("acme").size, len > n ? 7 : 6);
        }
}

static void recovery_cuts_and_records_without_a_new_event(void **state) {
        struct ledger *l = logs_open(0);
        AUTO_FREE char *text = NULL, *longer = malloc(65536);
        struct err err = { 0 };
        size_t n;

        (void) state;
        logs_fill(l, "acme", 4, 1);
        (void) ledger_free(l);
        text = logs_read("acme", FIRST, &n);
        memcpy(longer, text, n);
        memcpy(longer + n, "unfinished", 10);
        logs_write("acme", FIRST, longer, n + 10);
        assert_false(logs_verify("acme").ok);
        l = logs_open(0);
        assert_int_equal(ledger_recover(l, &err), 0);
        assert_int_equal(ledger_recover(l, &err), 0); /* and once is enough */
        (void) ledger_free(l);
        assert_true(logs_verify("acme").ok);
        assert_int_equal(logs_verify("acme").size, 6);
        assert_true(log_has("acme", FIRST, "\"cut\":\"10 bytes, sha256:"));
}

/* Killed while a new file was begun: made, or written in part, and no head knows of it. */
static void recovery_settles_a_file_that_was_begun(void **state) {
        static const char next[] = "000000000006.log";
        struct ledger *l = logs_open(0);
        struct err err = { 0 };

        (void) state;
        logs_fill(l, "acme", 4, 1);
        (void) ledger_free(l);
        logs_write("acme", next, "", 0);
        l = logs_open(0);
        assert_int_equal(ledger_recover(l, &err), 0);
        (void) ledger_free(l);
        assert_true(logs_verify("acme").ok);
        assert_int_equal(logs_verify("acme").size, 5);
        logs_write("acme", next, "unfinished", 10);
        l = logs_open(0);
        assert_int_equal(ledger_recover(l, &err), 0);
        assert_true(logs_verify("acme").ok);
        assert_true(log_has("acme", next, "\"cut\":\"10 bytes, sha256:"));
        logs_fill(l, "acme", 2, 1);
        (void) ledger_free(l);
        assert_true(logs_verify("acme").ok);
        assert_int_equal(logs_verify("acme").size, 8);
}

/* The newest head was being written when the power went: the one before counts, and what it does not cover is cut. */
static void torn_head_falls_back_to_the_one_before(void **state) {
        struct ledger *l = logs_open(0);
        AUTO_FREE char *page = NULL;
        char note[AUDIT_HEAD_BYTES];
        struct audit_head h;
        struct err err = { 0 };
        size_t n;

        (void) state;
        logs_fill(l, "acme", 4, 1);
        (void) ledger_free(l);
        assert_int_equal(ledger_head(logs_dir, "acme", note, &h, &err), 0);
        page = logs_read("acme", h.tree.size % 2 ? "head.0" : "head.1", &n);
        assert_memory_equal(page, note, strlen(note));
        memset(page + 100, 0, n - 100);
        logs_write("acme", h.tree.size % 2 ? "head.0" : "head.1", page, n);
        l = logs_open(0);
        logs_fill(l, "acme", 1, 1);
        (void) ledger_free(l);
        assert_true(logs_verify("acme").ok);
        assert_true(log_has("acme", FIRST, "\"event_code\":\"log.cut\""));
}

static void log_that_was_shortened_is_not_written_any_more(void **state) {
        struct ledger *l = logs_open(0);
        AUTO_FREE char *text = NULL;
        struct audit_event ev;
        struct err err = { 0 };
        uint64_t seq;
        size_t n;

        (void) state;
        logs_fill(l, "acme", 4, 1);
        (void) ledger_free(l);
        text = logs_read("acme", FIRST, &n);
        logs_write("acme", FIRST, text, n - 10);
        l = logs_open(0);
        audit_event_init(&ev, AUDIT_ADMIN, "acme", "");
        assert_int_equal(ledger_append(l, &ev, &seq, &err), -EUCLEAN);
        assert_non_null(strstr(err.msg, "gabion audit verify"));
        (void) ledger_free(l);
}

static void full_disk_refuses_and_leaves_the_log_whole(void **state) {
        struct rlimit old, small;
        struct ledger *l = logs_open(0);
        struct audit_event ev;
        struct err err = { 0 };
        uint64_t seq;
        int r = 0;

        (void) state;
        logs_fill(l, "acme", 3, 1);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
        small = (struct rlimit){ .rlim_cur = 12000, .rlim_max = old.rlim_max };
        (void) signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        for (int i = 0; r == 0 && i < 50; i++) {
                audit_event_init(&ev, AUDIT_ADMIN, "acme", "");
                r = ledger_append(l, &ev, &seq, &err);
                r = r < 0 ? r : ledger_commit(l, &err);
        }
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(r, -EFBIG);
        assert_true(logs_verify("acme").ok);
        logs_fill(l, "acme", 1, 1); /* and it goes on when there is room again */
        (void) ledger_free(l);
        assert_true(logs_verify("acme").ok);
}

static void several_writers_share_one_chain(void **state) {
        enum { WRITERS = 4, EACH = 40 };
        int status;

        (void) state;
        (void) ledger_free(logs_open(0)); /* the key */
        for (int i = 0; i < WRITERS; i++)
                if (fork() == 0) {
                        struct ledger *l = logs_open(20000);

                        logs_fill(l, "acme", EACH, 3);
                        _exit(0);
                }
        for (int i = 0; i < WRITERS; i++) {
                assert_true(wait(&status) > 0);
                assert_int_equal(status, 0);
        }
        assert_true(logs_verify("acme").ok);
        assert_int_equal(count("acme"), WRITERS * EACH + 1);
}

static void reading_starts_anywhere(void **state) {
        struct ledger *l = logs_open(8000);
        struct err err = { 0 };
        unsigned n = 0;

        (void) state;
        logs_fill(l, "acme", 30, 2);
        (void) ledger_free(l);
        assert_int_equal(ledger_each(logs_dir, "acme", 25, count_line, &n, &err), 0);
        assert_int_equal(n, 7);
        n = 0;
        assert_int_equal(ledger_each(logs_dir, "acme", 32, count_line, &n, &err), 0);
        assert_int_equal(n, 0);
        assert_int_equal(ledger_each(logs_dir, "nobody", 1, count_line, &n, &err), -ENOENT);
        assert_int_equal(ledger_each(logs_dir, "../x", 1, count_line, &n, &err), -EINVAL);
}

static void keys_change_and_the_first_is_enough_to_verify(void **state) {
        struct ledger *l = logs_open(8000);
        struct err err = { 0 };
        struct ledger *other;

        (void) state;
        logs_fill(l, "acme", 10, 2);
        other = logs_open(8000); /* a second writer, which does not know of the change */
        logs_fill(other, "acme", 1, 1);
        logs_keep_key();
        for (int i = 0; i < 3; i++) {
                assert_int_equal(ledger_rotate_key(l, &err), 0);
                assert_true(logs_verify("acme").ok);
                logs_fill(other, "acme", 2, 1);
                logs_fill(l, "acme", 2, 1);
                assert_true(logs_verify("acme").ok);
        }
        (void) ledger_free(l);
        (void) ledger_free(other);
        assert_true(logs_verify("acme").ok);
}

static void interrupted_change_of_keys_is_completed(void **state) {
        struct sign_key *next = NULL;
        struct ledger *l = logs_open(0);
        struct err err = { 0 };
        char path[96];

        (void) state;
        logs_fill(l, "acme", 3, 1);
        logs_keep_key();
        (void) ledger_free(l);
        (void) snprintf(path, sizeof(path), "%s/keys", logs_dir);
        assert_int_equal(sign_key_next(path, &next, &err), 0); /* died before the record */
        next = sign_key_free(next);
        l = logs_open(0);
        logs_fill(l, "acme", 1, 1);
        assert_true(logs_verify("acme").ok);
        assert_true(log_has("acme", FIRST, "log.key_changed"));
        (void) ledger_free(l);
        (void) snprintf(path, sizeof(path), "%s/keys/next.key", logs_dir);
        assert_int_equal(access(path, F_OK), -1);
}

static void heads_of_a_stranger_are_refused(void **state) {
        struct ledger *l = logs_open(0);
        struct ledger_verdict v;
        char path[96], aside[96];

        (void) state;
        logs_fill(l, "acme", 3, 1);
        (void) ledger_free(l);
        logs_keep_key();
        (void) snprintf(path, sizeof(path), "%s/keys/signing.key", logs_dir);
        (void) snprintf(aside, sizeof(aside), "%s/keys/signing.pub", logs_dir);
        assert_int_equal(unlink(path) | unlink(aside), 0);
        (void) snprintf(path, sizeof(path), "%s/acme", logs_dir);
        (void) snprintf(aside, sizeof(aside), "%s/aside", logs_dir);
        assert_int_equal(rename(path, aside), 0);
        l = logs_open(0);
        logs_fill(l, "acme", 3, 1);
        (void) ledger_free(l);
        v = logs_verify("acme"); /* a log just as good, by another key */
        assert_false(v.ok);
        assert_non_null(strstr(v.why, "not trusted"));
}

static void old_files_are_dropped_with_a_record_and_the_rest_verifies(void **state) {
        struct ledger *l = logs_open(8000);
        struct err err = { 0 };
        struct ledger_verdict v;
        AUTO_FREE char *leaves = NULL;
        char path[96];
        unsigned before;
        size_t n;

        (void) state;
        logs_fill(l, "acme", 40, 2);
        before = count("acme");
        assert_int_equal(ledger_retain(l, "acme", 3600000, &err), 0); /* nothing is that old */
        (void) sleep(1);
        logs_fill(l, "acme", 1, 1);
        assert_true(ledger_retain(l, "acme", 0, &err) > 0);
        v = logs_verify("acme");
        assert_true(v.ok);
        assert_true(v.first_kept > 1);
        assert_int_equal(v.size, before + 2);
        assert_true(count("acme") < before);
        logs_fill(l, "acme", 30, 2);
        (void) sleep(1);
        logs_fill(l, "acme", 1, 1);
        assert_true(ledger_retain(l, "acme", 0, &err) > 0); /* and again */
        (void) ledger_free(l);
        assert_true(logs_verify("acme").ok);
        /* Dropping without a record, or with other hashes, is damage. */
        leaves = logs_read("acme", "leaves", &n);
        leaves[n / 2] ^= 1;
        logs_write("acme", "leaves", leaves, n);
        assert_false(logs_verify("acme").ok);
        leaves[n / 2] ^= 1;
        logs_write("acme", "leaves", leaves, n);
        assert_true(logs_verify("acme").ok);
        (void) snprintf(path, sizeof(path), "%s/acme/leaves", logs_dir);
        assert_int_equal(unlink(path), 0);
        assert_false(logs_verify("acme").ok);
}

static void file_that_vanishes_without_a_record_is_missed_even_with_its_hashes(void **state) {
        struct ledger *l = logs_open(8000);
        struct ledger_trust trust = { .n_keys = 1 };
        struct ledger_verdict v;
        struct err err = { 0 };
        char path[96];

        (void) state;
        logs_fill(l, "acme", 30, 2);
        (void) ledger_free(l);
        (void) snprintf(path, sizeof(path), "%s/keys/signing.pub", logs_dir);
        assert_int_equal(sign_public_read(path, trust.keys[0], &err), 0);
        assert_int_equal(ledger_verify(logs_dir, "acme", &trust, true, &v, &err), 0);
        assert_true(v.ok);
        logs_write("acme", "leaves", (const char *) v.hashes, v.size * HASH_BYTES);
        free(v.hashes);
        (void) snprintf(path, sizeof(path), "%s/acme/%s", logs_dir, FIRST);
        assert_int_equal(unlink(path), 0);
        v = logs_verify("acme");
        assert_false(v.ok);
        assert_int_equal(v.seq, 1);
        assert_non_null(strstr(v.why, "no record says"));
}

static void head_that_was_saved_finds_a_log_rolled_back(void **state) {
        struct ledger_trust trust = { .n_keys = 1 };
        struct ledger_verdict v;
        struct ledger *l = logs_open(0);
        struct audit_head h;
        struct err err = { 0 };
        char note[AUDIT_HEAD_BYTES], path[96], command[256];

        (void) state;
        logs_fill(l, "acme", 3, 1);
        (void) snprintf(command, sizeof(command), "cp -a %s/acme %s/backup", logs_dir, logs_dir);
        assert_int_equal(system(command), 0);
        logs_fill(l, "acme", 3, 1);
        (void) ledger_free(l);
        assert_int_equal(ledger_head(logs_dir, "acme", note, &h, &err), 0);
        trust.saved = note;
        (void) snprintf(path, sizeof(path), "%s/keys/signing.pub", logs_dir);
        assert_int_equal(sign_public_read(path, trust.keys[0], &err), 0);
        assert_int_equal(ledger_verify(logs_dir, "acme", &trust, false, &v, &err), 0);
        assert_true(v.ok);
        (void) snprintf(command, sizeof(command), "rm -r %s/acme && mv %s/backup %s/acme", logs_dir, logs_dir,
                        logs_dir);
        assert_int_equal(system(command), 0);
        assert_true(logs_verify("acme").ok); /* in itself it is right: an old state */
        assert_int_equal(ledger_verify(logs_dir, "acme", &trust, false, &v, &err), 0);
        assert_false(v.ok);
        assert_non_null(strstr(v.why, "covers"));
}

static void nobody_else_reads_and_nobody_else_writes(void **state) {
        struct ledger *l = logs_open(0);
        struct err err = { 0 };
        struct stat st;
        char path[128];

        (void) state;
        logs_fill(l, "acme", 1, 1);
        assert_int_equal(ledger_statement(l, "acme", "k3v9x2m4q8r7t1w5z6ab", "start", "{}", 2, &err), 0);
        assert_int_equal(ledger_statement(l, "acme", "../../k3v9x2m4q8r7t1", "start", "{}", 2, &err), -EINVAL);
        (void) ledger_free(l);
        (void) snprintf(path, sizeof(path), "%s/acme/%s", logs_dir, FIRST);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        (void) snprintf(path, sizeof(path), "%s/acme", logs_dir);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0700);
        assert_int_equal(chmod(logs_dir, 0777), 0); /* a log that others can replace is no log */
        l = NULL;
        assert_int_equal(ledger_open(&(struct ledger_settings){ .dir = logs_dir, .readers = (gid_t) -1 }, &l, &err),
                         -EPERM);
        assert_int_equal(chmod(logs_dir, 0700), 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, logs_set_up, logs_tear_down)
        static const struct CMUnitTest tests[] = {
                T(committed_records_verify_and_count_from_one),
                T(what_was_not_committed_never_happened),
                T(torn_tail_is_cut_and_recorded_at_every_length),
                T(recovery_cuts_and_records_without_a_new_event),
                T(recovery_settles_a_file_that_was_begun),
                T(torn_head_falls_back_to_the_one_before),
                T(log_that_was_shortened_is_not_written_any_more),
                T(full_disk_refuses_and_leaves_the_log_whole),
                T(several_writers_share_one_chain),
                T(reading_starts_anywhere),
                T(keys_change_and_the_first_is_enough_to_verify),
                T(interrupted_change_of_keys_is_completed),
                T(heads_of_a_stranger_are_refused),
                T(old_files_are_dropped_with_a_record_and_the_rest_verifies),
                T(file_that_vanishes_without_a_record_is_missed_even_with_its_hashes),
                T(head_that_was_saved_finds_a_log_rolled_back),
                T(nobody_else_reads_and_nobody_else_writes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
