/* test_store.c - the store on a real file: what is promised of it, also across a restart and from a second opener. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "store/store.h"

struct fixture {
        char dir[32], path[48];
        struct store *store;
};

static const struct store_tenant red = { .id = "redredredredredredre", .name = "red", .created_ms = 10 };
static const struct store_tenant blue = { .id = "bluebluebluebluebl00", .name = "blue", .created_ms = 20 };

static int set_up(void **state) {
        struct fixture *f = calloc(1, sizeof(*f));
        struct err err = { 0 };

        (void) snprintf(f->dir, sizeof(f->dir), "/tmp/gabion-store-XXXXXX");
        if (!mkdtemp(f->dir))
                return -1;
        (void) snprintf(f->path, sizeof(f->path), "%s/store", f->dir);
        if (store_open(f->path, &f->store, &err) < 0 || store_tenant_add(f->store, &red, &err) < 0 ||
            store_tenant_add(f->store, &blue, &err) < 0) {
                print_error("%s\n", err.msg);
                return -1;
        }
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;
        static const char *const ends[] = { "", "-wal", "-shm" };
        char path[64];

        store_close(f->store);
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                (void) snprintf(path, sizeof(path), "%s%s", f->path, ends[i]);
                (void) unlink(path);
        }
        (void) rmdir(f->dir);
        free(f);
        return 0;
}

static struct store_sandbox sandbox(const struct store_tenant *t, unsigned n, const char *metadata) {
        struct store_sandbox b = { .state = STORE_RUNNING,
                                   .created_ms = 1000 + n,
                                   .ends_ms = 9000,
                                   .cpu_milli = 1000,
                                   .memory_bytes = 512,
                                   .disk_bytes = 7,
                                   .template = "host",
                                   .policy_hash = "sha256:00",
                                   .metadata = (char *) (uintptr_t) metadata,
                                   .policy = (char *) "{}" };

        (void) snprintf(b.id, sizeof(b.id), "sbx%017u", n);
        (void) str_copy(b.tenant, sizeof(b.tenant), t->id);
        return b;
}

static void add(struct fixture *f, const struct store_tenant *t, unsigned n, const char *metadata) {
        struct store_sandbox b = sandbox(t, n, metadata);
        struct err err = { 0 };

        assert_int_equal(store_sandbox_add(f->store, &b, &err), 0);
}

static int collect(void *arg, const struct store_sandbox *b) {
        char *ids = arg;
        size_t n = strlen(ids);

        (void) snprintf(ids + n, 256 - n, "%s%s", n ? " " : "", b->id + strspn(b->id + 3, "0") + 3);
        return 0;
}

/* The numbers of the sandboxes that a filter gives, in order. */
static void assert_lists(struct fixture *f, const struct store_filter *filter, const char *want) {
        char ids[256] = "";
        struct err err = { 0 };

        assert_int_equal(store_sandbox_each(f->store, filter, collect, ids, &err), 0);
        assert_string_equal(ids, want);
}

static void file_is_private_and_survives_reopening(void **state) {
        struct fixture *f = *state;
        struct store_tenant t;
        struct err err = { 0 };
        struct stat st;

        assert_int_equal(stat(f->path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        f->store = store_close(f->store);
        assert_int_equal(store_open(f->path, &f->store, &err), 0);
        assert_int_equal(store_tenant_get(f->store, "red", &t, &err), 0);
        assert_string_equal(t.id, red.id);
}

static void newer_and_foreign_files_are_refused(void **state) {
        struct fixture *f = *state;
        struct store *other = NULL;
        struct err err = { 0 };
        char path[64];
        int fd;

        (void) snprintf(path, sizeof(path), "%s/junk", f->dir);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(write(fd, "this is not a database, and long enough to be told apart", 56), 56);
        (void) close(fd);
        assert_true(store_open(path, &other, &err) < 0);
        assert_non_null(strstr(err.msg, "junk"));
        (void) unlink(path);
        assert_int_equal(symlink(f->path, path), 0);
        assert_true(store_open(path, &other, &err) < 0);
        (void) unlink(path);
        assert_null(other);
        f->store = store_close(f->store);
        fd = open(f->path, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "\0\0\0\x63", 4, 60), 4); /* user_version in the file's header */
        (void) close(fd);
        assert_int_equal(store_open(f->path, &f->store, &err), -EPROTO);
        assert_non_null(strstr(err.msg, "newer program"));
}

static void tenant_names_are_unique_and_quota_is_kept(void **state) {
        struct fixture *f = *state;
        struct store_tenant t = red, got;
        struct err err = { 0 };

        (void) str_copy(t.id, sizeof(t.id), "another0000000000000");
        assert_int_equal(store_tenant_add(f->store, &t, &err), -EEXIST);
        t = blue;
        t.quota = (struct store_quota){ 3, 5, 4000, 1ull << 40, 1ull << 50 };
        t.disabled = true;
        assert_int_equal(store_tenant_update(f->store, &t, &err), 0);
        assert_int_equal(store_tenant_get(f->store, blue.id, &got, &err), 0);
        assert_memory_equal(&got, &t, sizeof(t));
        assert_int_equal(store_tenant_get(f->store, "green", &got, &err), -ENOENT);
}

static void ceiling_is_text_or_nothing(void **state) {
        struct fixture *f = *state;
        struct err err = { 0 };
        AUTO_FREE char *before = NULL, *after = NULL;

        assert_int_equal(store_tenant_ceiling(f->store, red.id, &before, &err), 0);
        assert_null(before);
        assert_int_equal(store_tenant_set_ceiling(f->store, red.id, "{\"version\":1}", &err), 0);
        assert_int_equal(store_tenant_ceiling(f->store, red.id, &after, &err), 0);
        assert_string_equal(after, "{\"version\":1}");
        assert_int_equal(store_tenant_set_ceiling(f->store, "nobody", "{}", &err), -ENOENT);
}

static void keys_are_found_by_hash_only(void **state) {
        struct fixture *f = *state;
        static const uint8_t hash[STORE_HASH] = { 1, 2, 3 }, other[STORE_HASH] = { 9 };
        struct store_key k = { .id = "key00000000000000000",
                               .name = "ci",
                               .role = STORE_DEVELOPER,
                               .mask = "e2b_12..ef",
                               .verbs = "read",
                               .templates = "host",
                               .created_ms = 5,
                               .expires_ms = 99 };
        struct store_key got;
        struct err err = { 0 };

        (void) str_copy(k.tenant, sizeof(k.tenant), red.id);
        assert_int_equal(store_key_add(f->store, &k, hash, &err), 0);
        assert_int_equal(store_key_find(f->store, hash, &got, &err), 0);
        assert_memory_equal(&got, &k, sizeof(k));
        assert_int_equal(store_key_find(f->store, other, &got, &err), -ENOENT);
        (void) str_copy(k.id, sizeof(k.id), "key00000000000000001");
        assert_int_equal(store_key_add(f->store, &k, hash, &err), -EEXIST);
        /* Another tenant cannot revoke it. */
        assert_int_equal(store_key_revoke(f->store, blue.id, "key00000000000000000", &err), -ENOENT);
        assert_int_equal(store_key_revoke(f->store, red.id, "key00000000000000000", &err), 0);
        assert_int_equal(store_key_used(f->store, "key00000000000000000", 77, &err), 0);
        assert_int_equal(store_key_find(f->store, hash, &got, &err), 0);
        assert_true(got.revoked && got.used_ms == 77);
        /* A key needs a tenant that exists. */
        (void) str_copy(k.tenant, sizeof(k.tenant), "nobody");
        assert_true(store_key_add(f->store, &k, other, &err) < 0);
}

static void sandbox_is_seen_by_its_tenant_only(void **state) {
        struct fixture *f = *state;
        struct store_sandbox b;
        struct err err = { 0 };

        add(f, &red, 1, "{\"a\":\"b\"}");
        assert_int_equal(store_sandbox_get(f->store, red.id, "sbx00000000000000001", &b, &err), 0);
        assert_string_equal(b.metadata, "{\"a\":\"b\"}");
        assert_null(b.network);
        store_sandbox_done(&b);
        assert_int_equal(store_sandbox_get(f->store, NULL, "sbx00000000000000001", &b, &err), 0);
        store_sandbox_done(&b);
        assert_int_equal(store_sandbox_get(f->store, blue.id, "sbx00000000000000001", &b, &err), -ENOENT);
}

static void names_are_free_again_when_their_owner_is_gone(void **state) {
        struct fixture *f = *state;
        struct store_sandbox b = sandbox(&red, 1, "{}"), c = sandbox(&red, 2, "{}"), d = sandbox(&blue, 3, "{}"), got;
        struct err err = { 0 };

        (void) str_copy(b.name, sizeof(b.name), "build");
        (void) str_copy(c.name, sizeof(c.name), "build");
        (void) str_copy(d.name, sizeof(d.name), "build");
        assert_int_equal(store_sandbox_add(f->store, &b, &err), 0);
        assert_int_equal(store_sandbox_add(f->store, &c, &err), -EEXIST);
        assert_int_equal(store_sandbox_add(f->store, &d, &err), 0); /* another tenant's business */
        assert_int_equal(store_sandbox_move(f->store, b.id, STORE_GONE, "expired", 5000, &err), 0);
        assert_int_equal(store_sandbox_add(f->store, &c, &err), 0);
        assert_int_equal(store_sandbox_get(f->store, red.id, "build", &got, &err), 0);
        assert_string_equal(got.id, c.id);
        store_sandbox_done(&got);
}

static void gone_is_for_good(void **state) {
        struct fixture *f = *state;
        struct store_sandbox b;
        struct err err = { 0 };
        const char *id = "sbx00000000000000001";

        add(f, &red, 1, "{}");
        assert_int_equal(store_sandbox_move(f->store, id, STORE_GONE, "oom", 4321, &err), 0);
        assert_int_equal(store_sandbox_move(f->store, id, STORE_RUNNING, "", 5000, &err), -ENOENT);
        assert_int_equal(store_sandbox_move(f->store, id, STORE_GONE, "expired", 5000, &err), -ENOENT);
        assert_int_equal(store_sandbox_set_end(f->store, id, 1, &err), -ENOENT);
        assert_int_equal(store_sandbox_get(f->store, red.id, id, &b, &err), 0);
        assert_string_equal(b.reason, "oom");
        assert_int_equal(b.ended_ms, 4321);
        store_sandbox_done(&b);
}

static void lists_filter_sort_and_page(void **state) {
        struct fixture *f = *state;
        struct err err = { 0 };

        for (unsigned i = 1; i <= 5; i++)
                add(f, i == 4 ? &blue : &red, i, i % 2 ? "{\"k 1\":\"v&2\",\"x\":\"y\"}" : "{}");
        assert_int_equal(store_sandbox_move(f->store, "sbx00000000000000003", STORE_PAUSED, "", 1, &err), 0);
        assert_int_equal(store_sandbox_move(f->store, "sbx00000000000000005", STORE_GONE, "killed", 1, &err), 0);
        assert_lists(f, &(struct store_filter){ 0 }, "5 4 3 2 1");
        assert_lists(f, &(struct store_filter){ .tenant = red.id, .oldest_first = true }, "1 2 3 5");
        assert_lists(f, &(struct store_filter){ .states = BIT(STORE_RUNNING) | BIT(STORE_PAUSED) }, "4 3 2 1");
        assert_lists(f, &(struct store_filter){ .states = BIT(STORE_PAUSED) }, "3");
        assert_lists(f, &(struct store_filter){ .since_ms = 1003 }, "5 4 3");
        assert_lists(f, &(struct store_filter){ .template = "other" }, "");
        assert_lists(f, &(struct store_filter){ .pairs = { { "k 1", "v&2" }, { "x", "y" } }, .n_pairs = 2 }, "5 3 1");
        assert_lists(f, &(struct store_filter){ .pairs = { { "k 1", "v&2" }, { "x", "z" } }, .n_pairs = 2 }, "");
        assert_lists(f, &(struct store_filter){ .limit = 2 }, "5 4");
        assert_lists(f, &(struct store_filter){ .limit = 2, .after_ms = 1004, .after_id = "sbx00000000000000004" },
                     "3 2");
        assert_lists(f, &(struct store_filter){ .pairs = { { "' OR 1=1 --", "x" } }, .n_pairs = 1 }, "");
}

static void sums_count_the_living(void **state) {
        struct fixture *f = *state;
        struct store_sums sums;
        struct err err = { 0 };

        for (unsigned i = 1; i <= 4; i++)
                add(f, i == 4 ? &blue : &red, i, "{}");
        assert_int_equal(store_sandbox_move(f->store, "sbx00000000000000002", STORE_GONE, "killed", 1, &err), 0);
        assert_int_equal(store_sandbox_sums(f->store, red.id, &sums, &err), 0);
        assert_int_equal(sums.sandboxes, 2);
        assert_int_equal(sums.memory_bytes, 1024);
        assert_int_equal(sums.cpu_milli, 2000);
        assert_int_equal(sums.disk_bytes, 14);
        assert_int_equal(store_sandbox_sums(f->store, NULL, &sums, &err), 0);
        assert_int_equal(sums.sandboxes, 3);
}

static int count_event(void *arg, const struct store_event *e) {
        *(uint64_t *) arg = *(uint64_t *) arg * 10 + e->seq;
        return 0;
}

static int count_attempts(void *arg, uint64_t n, const char *data) {
        char *seen = arg;
        size_t at = strlen(seen);

        (void) snprintf(seen + at, 256 - at, "%llu%s ", (unsigned long long) n, data);
        return 0;
}

static void attempts_of_each_sandbox_are_bounded(void **state) {
        struct fixture *f = *state;
        const char *first = "sbx00000000000000001", *second = "sbx00000000000000002";
        struct store_attempt all[] = { { first, true, "{}" }, { first, false, "[]" },   { second, false, "[]" },
                                       { first, true, "{}" }, { "nobody", true, "{}" }, { first, false, "[]" } };
        struct err err = { 0 };
        char seen[256] = "";

        add(f, &red, 1, "{}");
        add(f, &blue, 2, "{}");
        assert_int_equal(store_egress_add(f->store, all, ARRAY_SIZE(all), 3, &err), 0);
        assert_int_equal(store_egress_each(f->store, first, false, count_attempts, seen, &err), 0);
        assert_string_equal(seen, "2[] 3{} 4[] ");
        seen[0] = '\0';
        assert_int_equal(store_egress_each(f->store, first, true, count_attempts, seen, &err), 0);
        assert_string_equal(seen, "3{} ");
        seen[0] = '\0';
        assert_int_equal(store_egress_each(f->store, second, false, count_attempts, seen, &err), 0);
        assert_string_equal(seen, "1[] ");
        assert_int_equal(store_sandbox_move(f->store, first, STORE_GONE, "killed", 50, &err), 0);
        assert_true(store_prune(f->store, 100, 10, &err) > 0);
        seen[0] = '\0';
        assert_int_equal(store_egress_each(f->store, first, false, count_attempts, seen, &err), 0);
        assert_int_equal(store_egress_each(f->store, "nobody", false, count_attempts, seen, &err), 0);
        assert_string_equal(seen, "");
        assert_int_equal(store_egress_each(f->store, second, false, count_attempts, seen, &err), 0);
        assert_string_equal(seen, "1[] ");
}

static void events_are_in_order_and_pruned(void **state) {
        struct fixture *f = *state;
        struct store_event e = { .time_ms = 1, .kind = "created", .data = "{}", .sandbox = "s1" };
        uint64_t seq = 0, seen = 0;
        struct err err = { 0 };

        for (unsigned i = 0; i < 5; i++) {
                e.tenant = i == 2 ? blue.id : red.id;
                assert_int_equal(store_event_add(f->store, &e, &seq, &err), 0);
        }
        assert_int_equal(seq, 5);
        assert_int_equal(store_event_each(f->store, &(struct store_event_filter){ red.id, NULL, 1, 10 }, count_event,
                                          &seen, &err),
                         0);
        assert_int_equal(seen, 245);
        seen = 0;
        assert_int_equal(store_event_each(f->store, &(struct store_event_filter){ red.id, "s2", 0, 10 }, count_event,
                                          &seen, &err),
                         0);
        assert_int_equal(seen, 0);
        add(f, &red, 1, "{}");
        assert_int_equal(store_sandbox_move(f->store, "sbx00000000000000001", STORE_GONE, "killed", 50, &err), 0);
        assert_int_equal(store_prune(f->store, 51, 2, &err), 4);
        assert_int_equal(
                store_event_each(f->store, &(struct store_event_filter){ NULL, NULL, 0, 10 }, count_event, &seen, &err),
                0);
        assert_int_equal(seen, 45);
}

static void the_last_event_is_known(void **state) {
        struct fixture *f = *state;
        struct store_event e = { .time_ms = 7, .kind = "made", .data = "{}", .sandbox = "s1", .tenant = red.id };
        struct store_last last;
        struct err err = { 0 };
        uint64_t seq;

        assert_int_equal(store_event_last(f->store, NULL, &last, &err), -ENOENT);
        assert_int_equal(store_event_add(f->store, &e, &seq, &err), 0);
        e.kind = "ended";
        e.sandbox = "s2";
        assert_int_equal(store_event_add(f->store, &e, &seq, &err), 0);
        assert_int_equal(store_event_last(f->store, "s1", &last, &err), 0);
        assert_string_equal(last.kind, "made");
        assert_int_equal(last.time_ms, 7);
        assert_int_equal(store_event_last(f->store, NULL, &last, &err), 0);
        assert_int_equal(last.seq, seq);
        assert_int_equal(store_event_last(f->store, "s3", &last, &err), -ENOENT);
}

static void it_is_known_where_an_agent_is(void **state) {
        struct fixture *f = *state;
        struct store_sandbox b = sandbox(&red, 1, "{}");
        struct err err = { 0 };

        (void) str_copy(b.socket, sizeof(b.socket), "/run/x");
        assert_int_equal(store_sandbox_add(f->store, &b, &err), 0);
        assert_int_equal(store_sandbox_get(f->store, red.id, b.id, &b, &err), 0);
        assert_string_equal(b.socket, "/run/x");
        store_sandbox_done(&b);
}

static void second_opener_sees_what_was_committed(void **state) {
        struct fixture *f = *state;
        CLEANUP(store_closep) struct store *other = NULL;
        struct store_sandbox b;
        struct err err = { 0 };

        add(f, &red, 1, "{}");
        assert_int_equal(store_open(f->path, &other, &err), 0);
        assert_int_equal(store_sandbox_get(other, NULL, "sbx00000000000000001", &b, &err), 0);
        store_sandbox_done(&b);
}

static uint64_t last_seen(struct store *s) {
        struct store_last last = { 0 };
        struct err err = { 0 };

        return store_event_last(s, NULL, &last, &err) == 0 ? last.seq : 0;
}

static void events_are_committed_with_the_next_change(void **state) {
        struct fixture *f = *state;
        CLEANUP(store_closep) struct store *other = NULL;
        const struct store_event e = { .time_ms = 1, .kind = "x", .data = "{}", .sandbox = "", .tenant = red.id };
        struct store_sandbox b = sandbox(&red, 1, "{}");
        struct err err = { 0 };
        uint64_t seq;

        assert_int_equal(store_open(f->path, &other, &err), 0);
        assert_int_equal(store_event_add(f->store, &e, &seq, &err), 0);
        assert_int_equal(last_seen(f->store), seq);
        assert_int_equal(last_seen(other), 0);
        assert_int_equal(store_sandbox_add(f->store, &b, &err), 0);
        assert_int_equal(last_seen(other), seq);
        /* What is begun stays together, and a row that is refused takes nothing else with it. */
        assert_int_equal(store_begin(f->store, &err), 0);
        assert_int_equal(store_sandbox_add(f->store, &b, &err), -EEXIST);
        assert_int_equal(store_event_add(f->store, &e, &seq, &err), 0);
        assert_int_equal(store_sandbox_set_end(f->store, b.id, 5, &err), 0);
        assert_true(last_seen(other) < seq);
        assert_int_equal(store_settle(f->store, &err), 0);
        assert_int_equal(last_seen(other), seq);
        assert_int_equal(store_settle(f->store, &err), 0);
}

#define WITH(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                WITH(file_is_private_and_survives_reopening),
                WITH(newer_and_foreign_files_are_refused),
                WITH(tenant_names_are_unique_and_quota_is_kept),
                WITH(ceiling_is_text_or_nothing),
                WITH(keys_are_found_by_hash_only),
                WITH(sandbox_is_seen_by_its_tenant_only),
                WITH(names_are_free_again_when_their_owner_is_gone),
                WITH(gone_is_for_good),
                WITH(lists_filter_sort_and_page),
                WITH(sums_count_the_living),
                WITH(attempts_of_each_sandbox_are_bounded),
                WITH(events_are_in_order_and_pruned),
                WITH(the_last_event_is_known),
                WITH(it_is_known_where_an_agent_is),
                WITH(second_opener_sees_what_was_committed),
                WITH(events_are_committed_with_the_next_change),
        };

        return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
