/*
 * test_program.c - the shipped programs say what the tables say. Four answers are compared for each call: a second
 * reading of the tables, the program in a simulator, the program in the running kernel, and libseccomp's program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "model.h"
#include "oracle.h"
#include "reference.h"
#include "seccomp/seccomp.h"
#include "vectors.h"

static const char *const names[] = { "agent", "strict", "debug" };

static struct model *load_model(void) {
        return model_new(SECCOMP_TABLES, SECCOMP_ARCH);
}

static void compare(unsigned profile) {
        struct model *m = load_model();
        struct seccomp_program p;
        const struct sys_bpf_insn *ref;
        AUTO_FREE uint32_t *kernel = NULL;
        struct vectors v;
        size_t n_ref, wrong = 0;
        int r;

        seccomp_program(profile, &p);
        ref = reference_program(profile, &n_ref);
        v = vectors_new(m, profile, p.insns, p.n);
        kernel = calloc(v.n, sizeof(*kernel));
        assert_non_null(kernel);
        r = oracle_ask(p.insns, p.n, v.v, v.n, kernel);
        assert_int_equal(r, 0);
        for (size_t i = 0; i < v.n; i++) {
                const struct sim_data *d = &v.v[i];
                bool looked;
                int code;
                uint32_t want = model_answer(m, profile, d, &code);
                uint32_t ours = sim_run(p.insns, p.n, d, &looked);
                uint32_t theirs = sim_run(ref, n_ref, d, &looked);

                if (want == ours && want == theirs && want == kernel[i])
                        continue;
                if (wrong++ < 10)
                        print_error("%s: call %d (%llx %llx %llx): table %x, program %x, kernel %x, libseccomp %x\n",
                                    names[profile], d->nr, (unsigned long long) d->args[0],
                                    (unsigned long long) d->args[1], (unsigned long long) d->args[2], want, ours,
                                    kernel[i], theirs);
        }
        print_message("%s: %zu calls, %zu differences, %u instructions (libseccomp: %zu)\n", names[profile], v.n, wrong,
                      p.n, n_ref);
        assert_int_equal(wrong, 0);
        vectors_done(&v);
        (void) model_free(m);
}

static void agent_program_table_kernel_and_libseccomp_agree(void **state) {
        (void) state;
        compare(SECCOMP_AGENT);
}

static void strict_program_table_kernel_and_libseccomp_agree(void **state) {
        (void) state;
        compare(SECCOMP_STRICT);
}

static void debug_program_table_kernel_and_libseccomp_agree(void **state) {
        (void) state;
        compare(SECCOMP_DEBUG);
}

static void foreign_architectures_are_killed(void **state) {
        static const uint32_t archs[] = { 0x40000003, 0xc000003e, 0xc00000b7, 0x40000028, 0, UINT32_MAX };
        struct model *m = load_model();

        (void) state;
        for (unsigned p = 0; p < SECCOMP_PROFILES; p++)
                for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
                        struct sim_data d = { .nr = SYS_read, .arch = archs[i] };
                        struct seccomp_program prog;
                        bool looked;

                        seccomp_program(p, &prog);
                        assert_int_equal(sim_run(prog.insns, prog.n, &d, &looked),
                                         archs[i] == model_arch(m) ? MODEL_ALLOW : MODEL_KILL);
                }
        (void) model_free(m);
}

/* A change here means that the surface changed: it must be meant. */
static void surface_and_cached_calls_are_pinned(void **state) {
#if defined(__x86_64__)
        static const unsigned want_cached[] = { 245, 199, 248 }, want_ruled[] = { 14, 9, 14 };
#else
        static const unsigned want_cached[] = { 209, 164, 212 }, want_ruled[] = { 12, 7, 12 };
#endif
        struct model *m = load_model();

        (void) state;
        for (unsigned p = 0; p < SECCOMP_PROFILES; p++) {
                struct seccomp_program prog;
                unsigned cached = 0, ruled = 0;

                seccomp_program(p, &prog);
                for (int nr = 0; nr < MODEL_NR; nr++) {
                        struct sim_data d = { .nr = nr, .arch = model_arch(m) };
                        bool looked;
                        uint32_t r = sim_run(prog.insns, prog.n, &d, &looked);

                        cached += r == MODEL_ALLOW && !looked;
                        ruled += looked;
                }
                assert_int_equal(cached, want_cached[p]);
                assert_int_equal(ruled, want_ruled[p]);
        }
        (void) model_free(m);
}

static void hash_is_that_of_the_instructions(void **state) {
        (void) state;
        for (unsigned p = 0; p < SECCOMP_PROFILES; p++) {
                struct seccomp_program prog;
                char want[HASH_TEXT];

                seccomp_program(p, &prog);
                hash_text(want, prog.insns, prog.n * sizeof(prog.insns[0]));
                assert_string_equal(prog.hash, want);
        }
}

static void rows_say_what_the_program_does(void **state) {
        struct model *m = load_model();

        (void) state;
        for (unsigned p = 0; p < SECCOMP_PROFILES; p++) {
                size_t n;
                const struct seccomp_row *rows = seccomp_rows(p, &n);

                for (size_t i = 0; i < n; i++) {
                        struct sim_data d = { .nr = rows[i].nr, .arch = model_arch(m) };
                        const char *a = rows[i].answer;
                        int code;
                        uint32_t r = model_answer(m, p, &d, &code);

                        assert_int_equal(rows[i].nr, model_nr(m, rows[i].name));
                        assert_true(strlen(rows[i].reason) > 4);
                        if (model_has_rule(m, p, rows[i].nr))
                                assert_true(str_has_prefix(a, "rule:"));
                        else if (r == MODEL_ALLOW)
                                assert_string_equal(a, "allow");
                        else if (r == MODEL_NOTIFY)
                                assert_string_equal(a, "notify");
                        else
                                assert_string_equal(a, strerrorname_np((int) (r & 0xffff)));
                }
                assert_int_equal(n, SECCOMP_CALLS);
        }
        (void) model_free(m);
}

/* What libc cannot do without, and what the set-up child still does once its filter is on (sandbox/child.c). */
static void no_profile_refuses_what_every_process_needs(void **state) {
        static const char *const needed[] = {
                "sendmsg",         "recvmsg",      "read",   "write", "openat", "close", "execve",   "exit",
                "exit_group",      "rt_sigreturn", "futex",  "mmap",  "brk",    "fcntl", "mprotect", "rt_sigaction",
                "restart_syscall", "newfstatat",   "getpid", "dup3",
        };
        struct model *m = load_model();

        (void) state;
        for (unsigned p = 0; p < SECCOMP_PROFILES; p++) {
                struct sim_data d = { .nr = model_nr(m, "prctl"), .arch = model_arch(m), .args = { 27 } };
                struct seccomp_program prog;
                bool looked;

                seccomp_program(p, &prog);
                assert_int_equal(sim_run(prog.insns, prog.n, &d, &looked), MODEL_ALLOW); /* PR_GET_SECUREBITS */
                for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
                        d.nr = model_nr(m, needed[i]);
                        assert_int_equal(sim_run(prog.insns, prog.n, &d, &looked), MODEL_ALLOW);
                        assert_false(looked);
                }
        }
        (void) model_free(m);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(agent_program_table_kernel_and_libseccomp_agree),
                cmocka_unit_test(strict_program_table_kernel_and_libseccomp_agree),
                cmocka_unit_test(debug_program_table_kernel_and_libseccomp_agree),
                cmocka_unit_test(foreign_architectures_are_killed),
                cmocka_unit_test(surface_and_cached_calls_are_pinned),
                cmocka_unit_test(hash_is_that_of_the_instructions),
                cmocka_unit_test(rows_say_what_the_program_does),
                cmocka_unit_test(no_profile_refuses_what_every_process_needs),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
