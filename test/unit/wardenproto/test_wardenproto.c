/* test_wardenproto.c - messages of the warden: read back whole, refused when cut, stretched or impossible. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "base/rd.h"
#include "base/wr.h"
#include "wardenproto/wardenproto.h"

static uint8_t bytes[4096];
static struct wr w;

static const char id[] = "abcdefghij0123456789";

static struct rd start(size_t n) {
        assert_false(w.bad);
        return rd_from(bytes, n);
}

/* Decodes by `call` at every length but the right one, then at that. */
#define WHOLE_ONLY(call)                                                                                               \
        do {                                                                                                           \
                struct rd r;                                                                                           \
                                                                                                                       \
                for (size_t n_ = 0; n_ <= w.len + 1; n_++) {                                                           \
                        r = start(n_);                                                                                 \
                        assert_int_equal(call, n_ == w.len ? 0 : -EBADMSG);                                            \
                }                                                                                                      \
                r = start(w.len);                                                                                      \
                assert_int_equal(call, 0);                                                                             \
        } while (0)

static void create_is_read_back_and_names_are_plain(void **state) {
        struct wp_create in = { .tenant = "team-1", .hostname = "box", .from = WP_POOL_ONLY }, out;

        (void) state;
        memcpy(in.id, id, sizeof(in.id));
        w = wr_to(bytes, sizeof(bytes) - 1);
        wp_put_create(&w, &in);
        WHOLE_ONLY(wp_get_create(&r, &out));
        assert_string_equal(out.id, id);
        assert_string_equal(out.tenant, "team-1");
        assert_string_equal(out.hostname, "box");
        assert_int_equal(out.from, WP_POOL_ONLY);
        for (int i = 0; i < 8; i++) {
                static const char *const tenants[] = { "", "../x", "a b", "a/b" };
                static const char *const hosts[] = { "-x", ".x", "a_b", "a b" };
                struct wp_create bad = in;
                struct rd r;

                if (i < 4)
                        (void) strcpy(bad.tenant, tenants[i]);
                else
                        (void) strcpy(bad.hostname, hosts[i - 4]);
                w = wr_to(bytes, sizeof(bytes));
                wp_put_create(&w, &bad);
                r = start(w.len);
                assert_int_equal(wp_get_create(&r, &out), -EBADMSG);
        }
}

static void a_create_with_a_network_has_an_address(void **state) {
        struct wp_create in = { .tenant = "t", .from = WP_ANY }, out;
        char bind[WP_ADDRESS];
        struct rd rest;

        (void) state;
        memcpy(in.id, id, sizeof(in.id));
        w = wr_to(bytes, sizeof(bytes) - 1);
        wp_put_create_net(&w, &in, "2001:db8::1");
        WHOLE_ONLY(wp_get_create_net(&r, &out, bind));
        assert_string_equal(bind, "2001:db8::1");
        w = wr_to(bytes, sizeof(bytes));
        wp_put_create_net(&w, &in, "10.0.0.1\n");
        rest = start(w.len);
        assert_int_equal(wp_get_create_net(&rest, &out, bind), -EBADMSG);
}

static void a_change_of_the_network_is_read_back(void **state) {
        struct wp_network in = { .drop = true }, out;
        char in_hash[HASH_TEXT] = "sha256:00", hash[HASH_TEXT];
        struct rd rest;

        (void) state;
        memcpy(in.id, id, sizeof(in.id));
        w = wr_to(bytes, sizeof(bytes) - 1);
        wp_put_network(&w, &in);
        WHOLE_ONLY(wp_get_network(&r, &out));
        assert_true(out.drop);
        assert_string_equal(out.id, id);
        bytes[w.len - 1] = 2;
        rest = start(w.len);
        assert_int_equal(wp_get_network(&rest, &out), -EBADMSG);
        w = wr_to(bytes, sizeof(bytes) - 1);
        wp_put_hash(&w, in_hash);
        WHOLE_ONLY(wp_get_hash(&r, hash));
        assert_string_equal(hash, "sha256:00");
}

static void records_are_as_many_as_fit(void **state) {
        static struct wp_records out;
        struct rd r;

        (void) state;
        w = wr_to(bytes, 100);
        wp_put_lost(&w, 7);
        assert_true(wp_put_record(&w, id, "{\"a\":1}"));
        assert_true(wp_put_record(&w, id, "{\"b\":2}"));
        assert_false(wp_put_record(&w, id, "{\"too\":\"long for what is left of this space\"}"));
        r = start(w.len);
        assert_int_equal(wp_get_records(&r, &out), 0);
        assert_int_equal(out.lost, 7);
        assert_int_equal(out.n, 2);
        assert_string_equal(out.at[1].json, "{\"b\":2}");
        r = start(w.len - 1);
        assert_int_equal(wp_get_records(&r, &out), -EBADMSG);
        w = wr_to(bytes, sizeof(bytes));
        wp_put_lost(&w, 0);
        for (int i = 0; i <= WP_RECORDS_MAX; i++)
                assert_true(wp_put_record(&w, id, "{}"));
        r = start(w.len);
        assert_int_equal(wp_get_records(&r, &out), -EBADMSG);
}

static void ids_have_one_form(void **state) {
        static const char *const bad[] = { "",
                                           "abc",
                                           "abcdefghij012345678",
                                           "ABCDEFGHIJ0123456789",
                                           "../../../etc/passwd0",
                                           "abcdefghij01234567890" };
        char got[ID_TEXT];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct rd r;

                w = wr_to(bytes, sizeof(bytes));
                wp_put_id(&w, bad[i]);
                r = start(w.len);
                assert_int_equal(wp_get_id(&r, got), -EBADMSG);
        }
        w = wr_to(bytes, sizeof(bytes) - 1);
        wp_put_id(&w, id);
        WHOLE_ONLY(wp_get_id(&r, got));
        assert_string_equal(got, id);
}

static void answers_are_read_back(void **state) {
        struct wp_created in = { .from_pool = true,
                                 .slot = 7,
                                 .pid = 8,
                                 .took_us = 1ull << 40,
                                 .socket = "/run/x",
                                 .policy = "sha256:1",
                                 .read_back = { "sha256:2", "sha256:3" } },
                          out;
        struct wp_usage u = { .memory_bytes = 1, .disk_limit_bytes = 10, .cpu_us = 5 }, v;
        struct wp_status s = { 1, 2, 3, 4, 5, 6 }, t;
        uint32_t uid;
        char got[ID_TEXT];

        (void) state;
        w = wr_to(bytes, sizeof(bytes) - 1);
        wp_put_created(&w, &in);
        WHOLE_ONLY(wp_get_created(&r, &out));
        assert_true(out.from_pool && out.slot == 7 && out.pid == 8 && out.took_us == 1ull << 40);
        assert_string_equal(out.socket, "/run/x");
        assert_string_equal(out.read_back.plan, "sha256:3");
        w = wr_to(bytes, sizeof(bytes) - 1);
        wp_put_usage(&w, &u);
        WHOLE_ONLY(wp_get_usage(&r, &v));
        assert_memory_equal(&u, &v, sizeof(u));
        w = wr_to(bytes, sizeof(bytes) - 1);
        wp_put_status(&w, &s);
        WHOLE_ONLY(wp_get_status(&r, &t));
        assert_memory_equal(&s, &t, sizeof(s));
        w = wr_to(bytes, sizeof(bytes) - 1);
        wp_put_launch(&w, id, 1000);
        WHOLE_ONLY(wp_get_launch(&r, got, &uid));
        assert_int_equal(uid, 1000);
}

static void a_full_list_fits_into_one_message(void **state) {
        static struct wp_list in, out;

        (void) state;
        in.n = WP_LISTED;
        in.next = 4095;
        for (size_t i = 0; i < WP_LISTED; i++) {
                memcpy(in.boxes[i].id, id, sizeof(in.boxes[i].id));
                memset(in.boxes[i].tenant, 't', WP_TENANT - 1);
                in.boxes[i].state = WP_FROZEN;
                in.boxes[i].slot = (uint32_t) i;
        }
        w = wr_to(bytes, 4096 - 6);
        wp_put_list(&w, &in);
        WHOLE_ONLY(wp_get_list(&r, &out));
        assert_int_equal(out.boxes[WP_LISTED - 1].slot, WP_LISTED - 1);
        assert_int_equal(out.next, 4095);
        in.boxes[3].state = WP_STATES;
        w = wr_to(bytes, sizeof(bytes));
        wp_put_list(&w, &in);
        {
                struct rd r = start(w.len);

                assert_int_equal(wp_get_list(&r, &out), -EBADMSG);
        }
}

static void events_are_read_back(void **state) {
        struct wp_event in = { .kind = WP_ENDED, .tenant = "t", .end = { .reason = WP_OOM, .cpu_us = 9 } }, out;

        (void) state;
        memcpy(in.id, id, sizeof(in.id));
        w = wr_to(bytes, sizeof(bytes) - 1);
        wp_put_event(&w, &in);
        WHOLE_ONLY(wp_get_event(&r, &out));
        assert_true(out.end.reason == WP_OOM && out.end.cpu_us == 9);
        in = (struct wp_event){ .kind = WP_DENIED, .tenant = "t", .text = "mount", .suppressed = 1 };
        memcpy(in.id, id, sizeof(in.id));
        w = wr_to(bytes, sizeof(bytes) - 1);
        wp_put_event(&w, &in);
        WHOLE_ONLY(wp_get_event(&r, &out));
        assert_string_equal(out.text, "mount");
        assert_int_equal(out.suppressed, 1);
        in = (struct wp_event){
                .kind = WP_DRIFTED, .tenant = "t", .text = "mount", .found = "rw", .action = WP_FREEZES
        };
        memcpy(in.id, id, sizeof(in.id));
        w = wr_to(bytes, sizeof(bytes) - 1);
        wp_put_event(&w, &in);
        WHOLE_ONLY(wp_get_event(&r, &out));
        assert_string_equal(out.found, "rw");
        assert_int_equal(out.action, WP_FREEZES);
        in.action = WP_ACTIONS;
        w = wr_to(bytes, sizeof(bytes));
        wp_put_event(&w, &in);
        {
                struct rd r = start(w.len);

                assert_int_equal(wp_get_event(&r, &out), -EBADMSG);
        }
        in = (struct wp_event){ .kind = WP_DENIED, .tenant = "t", .text = "mount" };
        memcpy(in.id, id, sizeof(in.id));
        in.text[0] = '\033';
        w = wr_to(bytes, sizeof(bytes));
        wp_put_event(&w, &in);
        {
                struct rd r = start(w.len);

                assert_int_equal(wp_get_event(&r, &out), -EBADMSG);
        }
}

static void a_check_says_what_differs(void **state) {
        struct wp_check in = { .drift = true, .control = "cgroup.memory", .found = "memory.max is 'max'" }, out;

        (void) state;
        w = wr_to(bytes, sizeof(bytes) - 1);
        wp_put_check(&w, &in);
        WHOLE_ONLY(wp_get_check(&r, &out));
        assert_true(out.drift);
        assert_string_equal(out.control, in.control);
        assert_string_equal(out.found, in.found);
        in.found[0] = '\n';
        w = wr_to(bytes, sizeof(bytes));
        wp_put_check(&w, &in);
        {
                struct rd r = start(w.len);

                assert_int_equal(wp_get_check(&r, &out), -EBADMSG);
        }
}

static void count(void *arg, const char *var) {
        *(size_t *) arg += strlen(var);
}

static void variables_have_names_and_ends(void **state) {
        static const struct {
                const char *bytes;
                size_t n;
                int want;
        } cases[] = {
                { "", 0, 0 },
                { "A=1\0B=\0", 7, 2 },
                { "A=1\0B", 5, -EBADMSG },
                { "=x\0", 3, -EBADMSG },
                { "AB\0", 3, -EBADMSG },
                { "A=1\0\0", 5, -EBADMSG },
        };
        size_t sum = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_int_equal(wp_env_each(cases[i].bytes, cases[i].n, NULL, NULL), cases[i].want);
        assert_int_equal(wp_env_each("A=1\0B=\0", 7, count, &sum), 2);
        assert_int_equal(sum, 5);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(create_is_read_back_and_names_are_plain),
                cmocka_unit_test(a_create_with_a_network_has_an_address),
                cmocka_unit_test(a_change_of_the_network_is_read_back),
                cmocka_unit_test(records_are_as_many_as_fit),
                cmocka_unit_test(ids_have_one_form),
                cmocka_unit_test(answers_are_read_back),
                cmocka_unit_test(a_full_list_fits_into_one_message),
                cmocka_unit_test(events_are_read_back),
                cmocka_unit_test(a_check_says_what_differs),
                cmocka_unit_test(variables_have_names_and_ends),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
