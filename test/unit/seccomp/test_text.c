/* test_text.c - events as people read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "seccomp/seccomp.h"

static void text_names_the_call_and_what_was_wanted(void **state) {
        static const struct {
                const char *want;
                struct seccomp_event ev;
        } cases[] = {
                { "mount", { .name = "mount", .args = { 0xdeadbeef, 0xdeadbeef, 0xdeadbeef } } },
                { "?", { .name = "?", .args = { 1 } } },
                { "unshare(CLONE_NEWUSER)", { .name = "unshare", .args = { 0x10000000 } } },
                { "unshare(CLONE_NEWNS|CLONE_NEWUSER)", { .name = "unshare", .args = { 0x10020000 } } },
                { "unshare(CLONE_NEWTIME)", { .name = "unshare", .args = { 0x80 } } },
                { "unshare", { .name = "unshare", .args = { 0x100 } } },
                { "clone(CLONE_NEWPID)", { .name = "clone", .args = { 0x20000091 } } },
                { "setns", { .name = "setns", .args = { 3, 0 } } },
                { "setns(CLONE_NEWNET)", { .name = "setns", .args = { 3, 0x40000000 } } },
                { "socket(AF_PACKET)", { .name = "socket", .args = { 17, 3 } } },
                { "socket(AF_INET, SOCK_RAW)", { .name = "socket", .args = { 2, 02000003 } } },
                { "socket(AF_INET6, SOCK_STREAM)", { .name = "socket", .args = { 10 | 1ull << 32, 1 } } },
                { "socket(99)", { .name = "socket", .args = { 99, 1 } } },
                { "bpf(BPF_PROG_LOAD)", { .name = "bpf", .args = { 5, 0xdeadbeef } } },
                { "bpf(7)", { .name = "bpf", .args = { 7, 0xdeadbeef } } },
                { "ptrace(PTRACE_ATTACH)", { .name = "ptrace", .args = { 16, 1 } } },
                { "keyctl(KEYCTL_READ)", { .name = "keyctl", .args = { 11 } } },
        };
        char text[128];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                seccomp_event_text(&cases[i].ev, text, sizeof(text));
                assert_string_equal(text, cases[i].want);
        }
}

static void text_stays_inside_its_room(void **state) {
        struct seccomp_event ev = { .name = "unshare", .args = { UINT64_MAX } };
        char text[256];

        (void) state;
        for (size_t cap = 0; cap <= sizeof(text) - 8; cap++) {
                memset(text, '#', sizeof(text));
                seccomp_event_text(&ev, text, cap);
                assert_int_equal(text[cap], '#');
                if (cap > 0)
                        assert_true(strnlen(text, sizeof(text)) < cap);
        }
        assert_non_null(strstr(text, "CLONE_NEWTIME)"));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(text_names_the_call_and_what_was_wanted),
                cmocka_unit_test(text_stays_inside_its_room),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
