/* A dossier has all records of its sandbox and no others, and opens in the state in which it was signed, and no other.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "dossier/dossier.h"
#include "json/json.h"
#include "logs.h"

#define OURS "aaaaaaaaaaaaaaaaaaaa"
#define START "{\"evidence\":{},\"plan\":{},\"policy\":{}}"

static char *envelope;
static struct ledger_trust keys;

/* An event that names the hash of a text under each of the keys. */
static void add(struct ledger *l, enum audit_kind kind, const char *keys_of, const char *text) {
        struct audit_event ev;
        struct err err = { 0 };
        char hash[HASH_TEXT];
        uint64_t seq;

        audit_event_init(&ev, kind, "acme", OURS);
        hash_text(hash, text, strlen(text));
        if (strstr(keys_of, "start")) {
                audit_text(&ev, "evidence", hash);
                audit_text(&ev, "plan", hash);
                memcpy(ev.policy, hash, sizeof(ev.policy));
        } else if (strstr(keys_of, "end")) {
                audit_text(&ev, "receipt", hash);
        }
        assert_int_equal(ledger_append(l, &ev, &seq, &err), 0);
}

static int set_up(void **state) {
        struct err err = { 0 };
        struct ledger *l;

        if (logs_set_up(state) < 0)
                return -1;
        l = logs_open(9000);
        add(l, AUDIT_SANDBOX_CREATED, "", "");
        logs_fill(l, "acme", 10, 3);
        add(l, AUDIT_EVIDENCE, "start", "{}");
        assert_int_equal(ledger_statement(l, "acme", OURS, "start", START, strlen(START), &err), 0);
        logs_fill(l, "acme", 10, 3);
        add(l, AUDIT_SANDBOX_REMOVED, "end", "{}");
        assert_int_equal(ledger_statement(l, "acme", OURS, "end", "{}", 2, &err), 0);
        logs_fill(l, "acme", 3, 3);
        (void) ledger_free(l);
        return dossier_make(logs_dir, "acme", OURS, &envelope, &err) < 0 || ledger_own_keys(logs_dir, &keys, &err) < 0
                       ? -1
                       : 0;
}

static int tear_down(void **state) {
        free(envelope);
        return logs_tear_down(state);
}

static char *payload_open(void) {
        struct err err = { 0 };
        char *payload = NULL;

        assert_int_equal(sign_open(envelope, strlen(envelope), DOSSIER_TYPE, keys.keys[0], &payload, &err), 0);
        return payload;
}

static int check(const char *payload) {
        struct dossier_facts f;
        struct err err = { 0 };

        return dossier_check(payload, strlen(payload), keys.keys[0], &f, &err);
}

static void whole_dossier_is_accepted(void **state) {
        AUTO_FREE char *payload = payload_open();
        struct dossier_facts f;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(dossier_check(payload, strlen(payload), keys.keys[0], &f, &err), 0);
        assert_int_equal(f.events, 3);
        assert_int_equal(f.log_size, 27);
        assert_string_equal(f.sandbox, OURS);
        assert_true(f.has_start && f.has_end);
}

/* What the envelope's signature already forbids must not pass here either: each part is checked by itself. */
static void changed_parts_are_refused(void **state) {
        static const char *const changes[][2] = {
                { "sandbox.created", "sandbox.crxated" },
                { OURS, "baaaaaaaaaaaaaaaaaaa" },
                { "\\\"sequence\\\":2", "\\\"sequence\\\":3" },
                { "\"index\":1", "\"index\":2" },
                { "gabion/acme", "gabion/acmf" },
                { "{\\\"evidence\\\":{}", "{\\\"evidence\\\":[]" },
                { "\"path\":\"", "\"path\":\"0" },
                { "\"tenant\":\"acme\"", "\"tenant\":\"acmf\"" },
                { "\"version\":1", "\"version\":2" },
                { "\"end\":\"{}\"", "\"end\":\"[]\"" },
        };
        AUTO_FREE char *payload = payload_open();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                AUTO_FREE char *copy = malloc(strlen(payload) + 64);
                char *at = strstr(payload, changes[i][0]);

                assert_non_null(at);
                (void) sprintf(copy, "%.*s%s%s", (int) (at - payload), payload, changes[i][1],
                               at + strlen(changes[i][0]));
                if (check(copy) != -EBADMSG)
                        fail_msg("'%s' instead of '%s' was accepted", changes[i][1], changes[i][0]);
        }
}

static void every_byte_is_covered_by_a_check_or_by_the_signature(void **state) {
        AUTO_FREE char *payload = NULL;
        struct err err = { 0 };
        size_t n = strlen(envelope);
        uint8_t other[SIGN_PUBLIC];

        (void) state;
        for (size_t i = 0; i < n; i += 37) {
                char old = envelope[i];
                char *text = NULL;

                envelope[i] = (char) (old ^ 1);
                if (sign_open(envelope, n, DOSSIER_TYPE, keys.keys[0], &text, &err) == 0)
                        assert_int_equal(check(text), 0); /* only the key's name, which decides nothing */
                free(text);
                envelope[i] = old;
        }
        memcpy(other, keys.keys[0], sizeof(other));
        other[0] ^= 1;
        assert_true(sign_open(envelope, n, DOSSIER_TYPE, other, &payload, &err) < 0);
}

static void damaged_log_gives_no_dossier(void **state) {
        AUTO_FREE char *text = NULL, *made = NULL;
        struct err err = { 0 };
        size_t n;

        (void) state;
        text = logs_read("acme", "000000000001.log", &n);
        text[n / 2] ^= 1;
        logs_write("acme", "000000000001.log", text, n);
        assert_int_equal(dossier_make(logs_dir, "acme", OURS, &made, &err), -EBADMSG);
        text[n / 2] ^= 1;
        logs_write("acme", "000000000001.log", text, n);
        assert_int_equal(dossier_make(logs_dir, "acme", "bbbbbbbbbbbbbbbbbbbb", &made, &err), -ENOENT);
        assert_int_equal(dossier_make(logs_dir, "acme", "../x", &made, &err), -EINVAL);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(whole_dossier_is_accepted),
                cmocka_unit_test(changed_parts_are_refused),
                cmocka_unit_test(every_byte_is_covered_by_a_check_or_by_the_signature),
                cmocka_unit_test(damaged_log_gives_no_dossier),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
