/*
 * Whatever is done to the files of a log, verification fails and names the place: 1,000 random mutations (flipped bits,
 * dropped, swapped, doubled and forged records, cut files), with a fixed seed.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "logs.h"

enum { RECORDS = 120, FILES = 8, MUTATIONS = 1000 };

struct file {
        char name[32];
        char *text;
        size_t n;
        size_t lines, starts[RECORDS + 2]; /* of lines; the last is the end */
        uint64_t first;
};

static struct file files[FILES];
static size_t n_files;
static uint64_t seed = 20261115;

static uint32_t chance(uint32_t below) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t) (seed >> 33) % below;
}

static void load(const char *name, uint64_t first) {
        struct file *f = &files[n_files++];

        (void) snprintf(f->name, sizeof(f->name), "%.31s", name);
        f->text = logs_read("acme", name, &f->n);
        f->first = first;
        for (size_t i = 0; i < f->n; i++)
                if (i == 0 || f->text[i - 1] == '\n')
                        f->starts[f->lines++] = i;
        f->starts[f->lines] = f->n;
}

static int set_up(void **state) {
        struct ledger *l;
        char path[96];
        struct dirent **names;
        int n;

        if (logs_set_up(state) < 0)
                return -1;
        l = logs_open(40000); /* four files */
        logs_fill(l, "acme", RECORDS - 1, 7);
        (void) ledger_free(l);
        (void) snprintf(path, sizeof(path), "%s/acme", logs_dir);
        n = scandir(path, &names, NULL, alphasort);
        for (int i = 0; i < n; i++) {
                if (strstr(names[i]->d_name, ".log"))
                        load(names[i]->d_name, strtoull(names[i]->d_name, NULL, 10));
                free(names[i]);
        }
        free(names);
        return n_files >= 3 && logs_verify("acme").ok ? 0 : -1;
}

static int tear_down(void **state) {
        for (size_t i = 0; i < n_files; i++)
                free(files[i].text);
        return logs_tear_down(state);
}

static void untouched(const struct file *f) {
        logs_write("acme", f->name, f->text, f->n);
}

/* One mutation of a file; returns the number of the record that must be named. */
static uint64_t mutate(const struct file *f, char *text, size_t *n, const char **ret_what) {
        static const char *const what[] = { "flip", "drop", "swap", "double", "cut", "byte more", "forged" };
        unsigned kind = chance(7);
        size_t a = chance((uint32_t) f->lines), b = a, at = chance((uint32_t) f->n), line = 0;
        size_t from = f->starts[a], to = f->starts[a + 1];

        *ret_what = what[kind];
        while (line + 1 < f->lines && f->starts[line + 1] <= at)
                line++;
        memcpy(text, f->text, f->n);
        *n = f->n;
        switch (kind) {
        case 0:
                text[at] = (char) (text[at] ^ (1 << chance(8)));
                return f->first + line;
        case 1:
                memmove(text + from, text + to, f->n - to);
                *n = f->n - (to - from);
                return f->first + a;
        case 2:
                b = a + 1 < f->lines ? a + 1 : a - 1;
                a = a < b ? a : b;
                from = f->starts[a];
                to = f->starts[a + 1];
                memcpy(text + from, f->text + to, f->starts[a + 2] - to);
                memcpy(text + from + f->starts[a + 2] - to, f->text + from, to - from);
                return f->first + a;
        case 3:
                memmove(text + to + (to - from), text + to, f->n - to);
                memcpy(text + to, f->text + from, to - from);
                *n = f->n + (to - from);
                return f->first + a + 1;
        case 4:
                *n = at;
                return f->first + line;
        case 5:
                memmove(text + at + 1, text + at, f->n - at);
                text[at] = (char) ('a' + chance(26));
                *n = f->n + 1;
                return f->first + line;
        default: /* a digit of the time, as somebody would who wants to have been elsewhere */
                at = (size_t) (strstr(text + from, "\"time\":") - text) + 12;
                text[at] = text[at] == '9' ? '1' : '9';
                return f->first + a;
        }
}

static void every_mutation_is_found_and_its_place_named(void **state) {
        unsigned found = 0;

        (void) state;
        for (unsigned i = 0; i < MUTATIONS; i++) {
                const struct file *f = &files[chance((uint32_t) n_files)];
                AUTO_FREE char *text = malloc(2 * f->n + 1);
                struct ledger_verdict v;
                const char *what;
                size_t n;
                uint64_t seq = mutate(f, text, &n, &what);

                logs_write("acme", f->name, text, n);
                v = logs_verify("acme");
                if (v.ok || v.seq != seq)
                        fail_msg("mutation %u (%s of %s): %s, record %llu named, %llu expected: %s", i, what, f->name,
                                 v.ok ? "not found" : "found", (unsigned long long) v.seq, (unsigned long long) seq,
                                 v.why);
                found++;
                untouched(f);
        }
        assert_int_equal(found, MUTATIONS);
        assert_true(logs_verify("acme").ok);
}

static void whole_files_cannot_go_or_change_places(void **state) {
        char path[128], other[96];

        (void) state;
        for (size_t i = 0; i < n_files; i++) {
                struct ledger_verdict v;

                (void) snprintf(path, sizeof(path), "%s/acme/%.31s", logs_dir, files[i].name);
                assert_int_equal(unlink(path), 0);
                v = logs_verify("acme");
                assert_false(v.ok);
                assert_int_equal(v.seq, i == 0 ? 1 : files[i].first);
                untouched(&files[i]);
        }
        logs_write("acme", files[0].name, files[1].text, files[1].n);
        assert_int_equal(logs_verify("acme").seq, 1);
        untouched(&files[0]);
        (void) snprintf(path, sizeof(path), "%s/acme", logs_dir); /* a chain under another tenant's name */
        (void) snprintf(other, sizeof(other), "%s/other", logs_dir);
        assert_int_equal(rename(path, other), 0);
        assert_false(logs_verify("other").ok);
        assert_int_equal(rename(other, path), 0);
        assert_true(logs_verify("acme").ok);
}

static void every_byte_of_the_heads_counts(void **state) {
        static const char *const names[] = { "head.0", "head.1" };

        (void) state;
        for (int h = 0; h < 2; h++) {
                size_t n;
                AUTO_FREE char *text = logs_read("acme", names[h], &n);

                assert_int_equal(n, AUDIT_HEAD_BYTES);
                for (size_t bit = 0; bit < 8 * n; bit += bit < 8 * 700 ? 5 : 97) {
                        struct ledger_verdict v;
                        size_t at = bit / 8;
                        char old = text[at];

                        text[at] = (char) (old ^ (1 << bit % 8));
                        logs_write("acme", names[h], text, n);
                        v = logs_verify("acme");
                        if (v.ok)
                                fail_msg("%s: byte %zu was %02x, is %02x, and nobody noticed", names[h], at,
                                         (unsigned char) old, (unsigned char) text[at]);
                        text[at] = old;
                }
                logs_write("acme", names[h], text, n / 2);
                assert_false(logs_verify("acme").ok);
                logs_write("acme", names[h], "", 0);
                assert_false(logs_verify("acme").ok);
                logs_write("acme", names[h], text, n);
                assert_true(logs_verify("acme").ok);
        }
}

static void record_behind_the_last_head_is_found(void **state) {
        const struct file *f = &files[n_files - 1];
        AUTO_FREE char *text = malloc(f->n + AUDIT_LINE_MAX);
        struct audit_place at = { .seq = RECORDS + 1, .logged_ms = 1, .node = "node1" };
        struct buf line = BUF_INIT(AUDIT_LINE_MAX);
        struct audit_event ev;
        struct audit_head h;
        struct err err = { 0 };
        char note[AUDIT_HEAD_BYTES];
        uint8_t hash[HASH_BYTES];
        struct ledger_verdict v;

        (void) state;
        assert_int_equal(ledger_head(logs_dir, "acme", note, &h, &err), 0);
        memcpy(at.prev, h.last, HASH_BYTES);
        audit_event_init(&ev, AUDIT_ADMIN, "acme", ""); /* its hash and number are right: only the signature lacks */
        assert_int_equal(audit_record_make(&ev, &at, &line, hash, &err), 0);
        memcpy(text, f->text, f->n);
        memcpy(text + f->n, line.p, line.len);
        text[f->n + line.len] = '\n';
        logs_write("acme", f->name, text, f->n + line.len + 1);
        v = logs_verify("acme");
        assert_false(v.ok);
        assert_int_equal(v.seq, RECORDS + 1);
        buf_done(&line);
        untouched(f);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_mutation_is_found_and_its_place_named),
                cmocka_unit_test(whole_files_cannot_go_or_change_places),
                cmocka_unit_test(every_byte_of_the_heads_counts),
                cmocka_unit_test(record_behind_the_last_head_is_found),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
