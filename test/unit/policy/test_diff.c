/* test_diff.c - what a second policy allows that the first did not, and the other way round. */
#include "base/str.h"
#include "net_help.h"

static struct policy a, b;

/* The items of one list as "what; what". */
static void list_text(const struct json *doc, const char *key, char *dst, size_t cap) {
        const struct json *list = json_get(doc, key);
        size_t n = 0;

        dst[0] = '\0';
        for (size_t i = 0; i < json_len(list); i++) {
                const struct json *j = json_at(list, i);
                const char *host = json_get_str(json_get(j, "rule"), "host"), *from = json_get_str(j, "from");

                n += (size_t) snprintf(dst + n, cap - n, "%s%s", i > 0 ? "; " : "", json_get_str(j, "what"));
                if (host)
                        n += (size_t) snprintf(dst + n, cap - n, " %s %s", json_get_str(j, "change"), host);
                else if (json_get_str(j, "target"))
                        n += (size_t) snprintf(dst + n, cap - n, " %s %s", json_get_str(j, "target"),
                                               json_get_str(j, "mode"));
                else
                        n += (size_t) snprintf(dst + n, cap - n, " %s>%s", from, json_get_str(j, "to"));
        }
}

/* Also: the other way round, more and less change places. */
static void differs(const char *more, const char *less, const char *other) {
        for (int i = 0; i < 2; i++) {
                CLEANUP(json_freep) struct json *doc = NULL;
                struct err err = { 0 };
                char got[512];

                assert_int_equal(policy_diff(i == 0 ? &a : &b, i == 0 ? &b : &a, &doc, &err), 0);
                if (i == 1) { /* only the places, since from and to change as well */
                        assert_int_equal(json_len(json_get(doc, "less")) == 0, *more == '\0');
                        assert_int_equal(json_len(json_get(doc, "more")) == 0, *less == '\0');
                        continue;
                }
                list_text(doc, "more", got, sizeof(got));
                assert_string_equal(got, more);
                list_text(doc, "less", got, sizeof(got));
                assert_string_equal(got, less);
                list_text(doc, "other", got, sizeof(got));
                assert_string_equal(got, other);
                assert_int_equal(str_eq(json_get_str(doc, "from"), json_get_str(doc, "to")),
                                 !*more && !*less && !*other);
        }
        policy_done(&a);
        policy_done(&b);
}

static void networks_are_compared_by_rule(void **state) {
        (void) state;
        net_accept(" {allow: [{host: a.example}, {host: b.example}], deny: [{host: x.example}]}", &a);
        net_accept(" {allow: [{host: b.example, ports: [443, 80]}, {host: c.example}], deny: [{host: y.example}],"
                   " budget: {names: 5, connections: 300}}",
                   &b);
        differs("network.budget.connections 256>300; network.allow added c.example; network.deny removed x.example",
                "network.budget.names 1000>5; network.allow removed a.example; network.deny added y.example", "");
        net_accept(" {}", &a);
        net_accept(" {preset: public}", &b);
        differs("network.default deny>allow", "", "");
        net_accept(" {allow: [{host: a.example}, {host: b.example}]}", &a);
        net_accept(" {allow: [{host: b.example}, {host: a.example}]}", &b);
        differs("", "", "order >");
        net_accept(" {allow: [{host: A.example}]}", &a);
        net_accept(" {allow: [{host: a.example., ports: [80, 443]}]}", &b);
        differs("", "", "");
}

static void mount(struct policy *p, const char *source, const char *target, bool writable) {
        struct policy_mount *m = &p->mounts[p->n_mounts++];

        (void) str_copy(m->source, sizeof(m->source), source);
        (void) str_copy(m->target, sizeof(m->target), target);
        m->writable = writable;
}

static void everything_else_is_compared_too(void **state) {
        (void) state;
        policy_default(&a);
        policy_default(&b);
        b.limits.memory_bytes *= 2;
        b.limits.pids--;
        b.limits.io_bytes_per_s = 0; /* no limit is more than any */
        b.user = POLICY_USER_ROOT;
        b.syscalls = POLICY_SYSCALLS_STRICT;
        mount(&a, "/s", "/a", false);
        mount(&a, "/s", "/gone", true);
        mount(&b, "/s", "/a", true);
        (void) str_copy(b.name, sizeof(b.name), "other");
        differs("user user>root; limits.memory 536870912>1073741824; limits.io 268435456>0; filesystem.mounts /a rw",
                "syscalls agent>strict; limits.pids 256>255; filesystem.mounts /gone rw", "name default>other");
        policy_default(&a);
        policy_default(&b);
        differs("", "", "");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(networks_are_compared_by_rule),
                cmocka_unit_test(everything_else_is_compared_too),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
