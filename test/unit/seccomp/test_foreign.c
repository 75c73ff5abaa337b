/* test_foreign.c - the program generated for the other architecture, by table and simulator; nothing is loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model.h"
#include "seccomp/blobs.h"
#include "vectors.h"

static void program_for_the_other_architecture_agrees_with_its_table(void **state) {
        struct model *m = model_new(SECCOMP_TABLES, SECCOMP_FOREIGN);

        (void) state;
        for (unsigned p = 0; p < SECCOMP_PROFILES; p++) {
                const struct seccomp_blob *b = seccomp_blob(p);
                struct vectors v = vectors_new(m, p, b->insns, b->n_insns);
                bool looked;
                int code;

                for (size_t i = 0; i < v.n; i++)
                        assert_int_equal(sim_run(b->insns, b->n_insns, &v.v[i], &looked),
                                         model_answer(m, p, &v.v[i], &code));
                vectors_done(&v);
        }
        (void) model_free(m);
}

static void surface_of_the_other_architecture_is_pinned(void **state) {
#if defined(__x86_64__)
        static const unsigned want[] = { 221, 171, 224 };
#else
        static const unsigned want[] = { 259, 208, 262 };
#endif
        (void) state;
        for (unsigned p = 0; p < SECCOMP_PROFILES; p++) {
                const struct seccomp_blob *b = seccomp_blob(p);
                unsigned allowed = 0;

                for (size_t i = 0; i < b->n_rows; i++)
                        allowed += b->rows[i].answer[0] == 'a' || b->rows[i].answer[0] == 'r';
                assert_int_equal(allowed, want[p]);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(program_for_the_other_architecture_agrees_with_its_table),
                cmocka_unit_test(surface_of_the_other_architecture_is_pinned),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
