/* A notary in a child: what it acknowledges is in a log that verifies, and what it cannot write it refuses. */
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
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "dossier/dossier.h"
#include "logs.h"
#include "notary/notary.h"

#define SANDBOX "k3v9x2m4q8r7t1w5z6ab"

enum { PATIENCE_MS = 20000 };

static pid_t server;

/* A notary whose one peer has the given uid and whose files may not grow beyond `most` bytes (0: no limit). */
static struct notary_client served(uid_t uid, rlim_t most) {
        int ends[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        server = fork();
        if (server == 0) {
                struct notary_settings s = { .log = { .dir = logs_dir, .node = "node1", .readers = (gid_t) -1 } };
                const struct ipc_peer peer = { .uid = uid };
                struct notary *n = NULL;
                struct err err = { 0 };
                sigset_t set;

                (void) sigemptyset(&set);
                (void) sigaddset(&set, SIGXFSZ);
                (void) sigprocmask(SIG_BLOCK, &set, NULL);
                if (most)
                        (void) setrlimit(RLIMIT_FSIZE, &(struct rlimit){ most, most });
                (void) close(ends[0]);
                s.writers[0].uid = 4242;
                (void) str_copy(s.writers[0].tenant, AUDIT_NAME, "theirs");
                s.n_writers = 1;
                if (notary_new(&s, &n, &err) < 0 || notary_add(n, ends[1], &peer, &err) < 0 ||
                    notary_serve(n, -1, -1, &err) < 0)
                        (void) fprintf(stderr, "%s\n", err.msg);
                (void) notary_free(n);
                _exit(err.code != 0);
        }
        (void) close(ends[1]);
        return (struct notary_client){ .fd = ends[0] };
}

static int ended(struct notary_client *c) {
        int status;

        notary_close(c);
        assert_int_equal(waitpid(server, &status, 0), server);
        return status;
}

static struct audit_event event(const char *tenant, unsigned i) {
        struct audit_event ev;

        audit_event_init(&ev, AUDIT_EXEC_STARTED, tenant, SANDBOX);
        audit_object(&ev, "python3");
        audit_number(&ev, "index", i);
        return ev;
}

static int will(struct notary_client *c, const struct audit_event *ev, struct err *err) {
        struct notary_batch b;

        notary_begin(&b);
        notary_put(&b, ev ? NOTARY_WILL : NOTARY_NO_WILL, ev);
        return notary_send(c, &b, NULL, NULL, 0, err);
}

static unsigned log_count(const char *tenant, const char *text) {
        size_t n;
        AUTO_FREE char *all = logs_read(tenant, "000000000001.log", &n);
        unsigned found = 0;

        for (char *at = all; (at = memmem(at, n - (size_t) (at - all), text, strlen(text))); at++)
                found++;
        return found;
}

static void acknowledged_events_are_in_the_log(void **state) {
        struct notary_client c = served(geteuid(), 0);
        struct audit_event ev = event("acme", 1);
        struct err err = { 0 };

        (void) state;
        assert_int_equal(notary_append(&c, &ev, &err), 0);
        assert_int_equal(notary_wait(&c, PATIENCE_MS, &err), 0);
        assert_true(logs_verify("acme").ok); /* while it runs */
        assert_int_equal(logs_verify("acme").size, 2);
        assert_int_equal(log_count("acme", ev.id), 1);
        assert_int_equal(ended(&c), 0);
}

static int note(struct notary_client *c, const struct audit_event *ev, const char *kind, const char *text,
                struct err *err) {
        struct notary_batch b;

        notary_begin(&b);
        notary_put(&b, NOTARY_NOTE, ev);
        return notary_send(c, &b, kind, text, text ? strlen(text) : 0, err);
}

static void notes_go_with_the_next_that_matters_or_by_themselves(void **state) {
        struct notary_client c = served(geteuid(), 0);
        struct audit_event first = event("acme", 1), second = event("acme", 2), third = event("acme", 3);
        struct err err = { 0 };

        (void) state;
        assert_int_equal(note(&c, &first, NULL, NULL, &err), 0);
        assert_int_equal(notary_append(&c, &second, &err), 0);
        assert_int_equal(notary_wait(&c, PATIENCE_MS, &err), 0);
        assert_int_equal(log_count("acme", first.id) + log_count("acme", second.id), 2);
        assert_int_equal(note(&c, &third, NULL, NULL, &err), 0);
        assert_int_equal(notary_wait(&c, PATIENCE_MS, &err), 0);
        assert_int_equal(log_count("acme", third.id), 1);
        assert_int_equal(ended(&c), 0);
        assert_true(logs_verify("acme").ok);
}

/* Asks for the dossier of the sandbox, and checks it with the oldest key. */
static struct dossier_facts dossier(struct notary_client *c, const struct ledger_trust *keys) {
        AUTO_FREE char *text = NULL, *payload = NULL;
        struct dossier_facts facts;
        struct err err = { 0 };
        size_t n;

        if (notary_dossier(c, "acme", SANDBOX, PATIENCE_MS, &text, &n, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(sign_open(text, n, DOSSIER_TYPE, keys->keys[0], &payload, &err), 0);
        assert_int_equal(dossier_check(payload, strlen(payload), keys->keys[0], &facts, &err), 0);
        return facts;
}

static struct audit_event ended_with(const char *receipt) {
        struct audit_event ev = event("acme", 1);
        char hash[HASH_TEXT];

        hash_text(hash, receipt, strlen(receipt));
        audit_text(&ev, "receipt", hash);
        return ev;
}

/* A document that nobody waits for is written behind its answer; whoever asks then finds it all the same. */
static void a_dossier_has_what_was_noted_before_it(void **state) {
        struct notary_client c = served(geteuid(), 0);
        const struct audit_event ev = ended_with("{\"a\":1}");
        struct ledger_trust keys;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(note(&c, &ev, "end", "{\"a\":1}", &err), 0);
        assert_int_equal(notary_wait(&c, PATIENCE_MS, &err), 0);
        assert_int_equal(ledger_own_keys(logs_dir, &keys, &err), 0);
        assert_true(dossier(&c, &keys).has_end);
        assert_int_equal(ended(&c), 0);
}

static void flood_is_taken_in_groups_and_nothing_is_lost(void **state) {
        enum { MANY = 5000 };
        struct notary_client c = served(geteuid(), 0);
        struct err err = { 0 };

        (void) state;
        for (unsigned i = 0; i < MANY; i++) {
                struct audit_event ev = event(i % 3 ? "acme" : "other", i);

                if (notary_append(&c, &ev, &err) < 0)
                        fail_msg("%s", err.msg);
        }
        assert_int_equal(notary_wait(&c, PATIENCE_MS, &err), 0);
        assert_int_equal(ended(&c), 0);
        assert_true(logs_verify("acme").ok);
        assert_int_equal(logs_verify("acme").size + logs_verify("other").size, MANY + 2);
}

static void writer_that_does_not_wait_is_still_recorded(void **state) {
        struct notary_client c = served(geteuid(), 0);
        struct audit_event ev = event("acme", 1);
        struct err err = { 0 };

        (void) state;
        for (int i = 0; i < 50; i++)
                assert_int_equal(notary_append(&c, &ev, &err), 0);
        assert_int_equal(ended(&c), 0); /* closed with all replies unread */
        assert_int_equal(log_count("acme", ev.id), 50);
}

static void will_is_recorded_when_the_writer_dies(void **state) {
        struct notary_client c = served(geteuid(), 0);
        struct audit_event ev;
        struct err err = { 0 };

        (void) state;
        audit_event_init(&ev, AUDIT_SANDBOX_ENDED, "acme", SANDBOX);
        audit_text(&ev, "reason", "lost");
        assert_int_equal(will(&c, &ev, &err), 0);
        assert_int_equal(notary_wait(&c, PATIENCE_MS, &err), 0);
        assert_int_equal(ended(&c), 0);
        assert_int_equal(log_count("acme", "\"reason\":\"lost\""), 1);
        c = served(geteuid(), 0);
        assert_int_equal(will(&c, &ev, &err), 0);
        assert_int_equal(will(&c, NULL, &err), 0); /* an orderly end takes it back */
        assert_int_equal(ended(&c), 0);
        assert_int_equal(log_count("acme", "\"reason\":\"lost\""), 1);
}

static void strangers_write_to_their_tenant_or_not_at_all(void **state) {
        struct notary_client c = served(4242, 0);
        struct audit_event ev = event("theirs", 1), other = event("acme", 1);
        struct err err = { 0 };

        (void) state;
        if (geteuid() == 4242) {
                print_message("needs another user than 4242\n");
                skip();
        }
        assert_int_equal(notary_append(&c, &ev, &err), 0);
        assert_int_equal(notary_wait(&c, PATIENCE_MS, &err), 0);
        assert_int_equal(notary_append(&c, &other, &err), 0);
        assert_int_equal(notary_wait(&c, PATIENCE_MS, &err), -EPERM);
        assert_int_equal(err.kind, ERR_DENIED);
        assert_int_equal(notary_rotate(&c, PATIENCE_MS, &err), -EPERM);
        assert_int_equal(ended(&c), 0);
        c = served(4243, 0);
        assert_true(ended(&c) != 0); /* not even a connection */
}

static void peer_that_breaks_the_protocol_is_cut_off_and_recorded(void **state) {
        static const char *const bad[] = { "\0\1\0\0\0\1 nonsense", "\0\x1f\0\0\0\1", "\0\3\0\0\0\1 more" };
        static const size_t sizes[] = { 15, 6, 11 };

        (void) state;
        for (size_t i = 0; i < 3; i++) {
                struct notary_client c = served(geteuid(), 0);
                char byte;

                assert_int_equal(send(c.fd, bad[i], sizes[i], 0), sizes[i]);
                assert_int_equal(recv(c.fd, &byte, 1, 0), 0);
                assert_int_equal(ended(&c), 0);
        }
        assert_int_equal(log_count("system", "\"event_code\":\"alert\""), 3);
}

/* What travels together succeeds or fails together, as far as the writer is told. */
static void events_of_one_message_fail_together(void **state) {
        struct notary_client c = served(4242, 0);
        struct audit_event theirs = event("theirs", 1), ours = event("acme", 2);
        struct notary_batch b;
        struct err err = { 0 };
        char path[96];

        (void) state;
        notary_begin(&b);
        notary_put(&b, NOTARY_EVENT, &theirs);
        notary_put(&b, NOTARY_EVENT, &ours);
        notary_put(&b, NOTARY_EVENT, &theirs);
        assert_int_equal(notary_send(&c, &b, NULL, NULL, 0, &err), 0);
        assert_int_equal(notary_wait(&c, PATIENCE_MS, &err), -EPERM);
        notary_begin(&b);
        notary_put(&b, NOTARY_EVENT, &theirs);
        notary_put(&b, NOTARY_EVENT, &theirs);
        assert_int_equal(notary_send(&c, &b, NULL, NULL, 0, &err), 0);
        assert_int_equal(notary_wait(&c, PATIENCE_MS, &err), 0);
        notary_begin(&b); /* the document cannot be kept: its place is taken */
        notary_put(&b, NOTARY_EVENT, &theirs);
        logs_write("theirs", "statements", "", 0);
        assert_int_equal(notary_send(&c, &b, "start", "{}", 2, &err), 0);
        assert_int_equal(notary_wait(&c, PATIENCE_MS, &err), -ENOTDIR);
        (void) snprintf(path, sizeof(path), "%s/theirs/statements", logs_dir);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(notary_send(&c, &b, "start", "{}", 2, &err), 0);
        assert_int_equal(notary_wait(&c, PATIENCE_MS, &err), 0);
        assert_int_equal(ended(&c), 0);
        assert_true(logs_verify("theirs").ok);
}

static void log_that_cannot_be_written_refuses(void **state) {
        struct notary_client c = served(geteuid(), 8192);
        struct err err = { 0 };
        unsigned acknowledged = 0;
        int r = 0;

        (void) state;
        while (r == 0 && acknowledged < 100) {
                struct audit_event ev = event("acme", acknowledged);

                r = notary_append(&c, &ev, &err);
                r = r < 0 ? r : notary_wait(&c, PATIENCE_MS, &err);
                acknowledged += r == 0;
        }
        assert_int_equal(r, -EFBIG);
        assert_non_null(strstr(err.msg, "cannot be written"));
        assert_int_equal(ended(&c), 0);
        assert_true(logs_verify("acme").ok);
        assert_int_equal(log_count("acme", "exec.started"), acknowledged);
}

static void statement_key_and_dossier(void **state) {
        struct notary_client c = served(geteuid(), 0);
        const struct audit_event ev = ended_with("{\"a\":1}");
        struct dossier_facts facts;
        struct ledger_trust keys;
        struct err err = { 0 };
        struct notary_batch b;
        char *text = NULL;
        size_t n;

        (void) state;
        notary_begin(&b);
        notary_put(&b, NOTARY_EVENT, &ev);
        assert_int_equal(notary_send(&c, &b, "end", "{\"a\":1}", 7, &err), 0);
        assert_int_equal(notary_wait(&c, PATIENCE_MS, &err), 0);
        assert_int_equal(notary_rotate(&c, PATIENCE_MS, &err), 0);
        assert_int_equal(ledger_own_keys(logs_dir, &keys, &err), 0);
        assert_int_equal(keys.n_keys, 2);
        facts = dossier(&c, &keys);
        assert_int_equal(facts.events, 1);
        assert_true(facts.has_end && !facts.has_start);
        assert_int_equal(notary_dossier(&c, "acme", "aaaaaaaaaaaaaaaaaaaa", PATIENCE_MS, &text, &n, &err), -ENOENT);
        assert_int_equal(ended(&c), 0);
}

static void stop_answers_what_was_taken(void **state) {
        struct notary_settings s = { .log = { .dir = logs_dir, .node = "node1", .readers = (gid_t) -1 } };
        const struct ipc_peer peer = { .uid = geteuid() };
        struct audit_event ev = event("acme", 1);
        struct notary *n = NULL;
        struct notary_client c;
        struct err err = { 0 };
        int ends[2], stop = eventfd(1, EFD_CLOEXEC);

        (void) state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(notary_new(&s, &n, &err), 0);
        assert_int_equal(notary_add(n, ends[1], &peer, &err), 0);
        c = (struct notary_client){ .fd = ends[0] };
        assert_int_equal(notary_append(&c, &ev, &err), 0);
        assert_int_equal(notary_serve(n, -1, stop, &err), 0);
        (void) notary_free(n);
        /* Taken or not: an answer means that it is in the log, and a closed socket that it may not be. */
        if (notary_wait(&c, PATIENCE_MS, &err) == 0)
                assert_int_equal(log_count("acme", ev.id), 1);
        notary_close(&c);
        (void) close(stop);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, logs_set_up, logs_tear_down)
        static const struct CMUnitTest tests[] = {
                T(acknowledged_events_are_in_the_log),
                T(flood_is_taken_in_groups_and_nothing_is_lost),
                T(writer_that_does_not_wait_is_still_recorded),
                T(will_is_recorded_when_the_writer_dies),
                T(strangers_write_to_their_tenant_or_not_at_all),
                T(peer_that_breaks_the_protocol_is_cut_off_and_recorded),
                T(events_of_one_message_fail_together),
                T(log_that_cannot_be_written_refuses),
                T(statement_key_and_dossier),
                T(notes_go_with_the_next_that_matters_or_by_themselves),
                T(a_dossier_has_what_was_noted_before_it),
                T(stop_answers_what_was_taken),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
