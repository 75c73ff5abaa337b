/* test_netpool.c - namespaces made beforehand: each is a whole one, given out once, and never more than asked for. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "base/sys.h"
#include "namespaces.h"
#include "sandbox/netns.h"
#include "sandbox/netpool.h"

enum { SIZE = 3 };

static bool said(const struct err *e) {
        (void) printf("%s\n", e->msg);
        return false;
}

static uint64_t number_of(int fd) {
        struct stat st;

        return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static bool is_whole(struct netns *n, struct err *e) {
        const char *control = "";
        struct plan plan = { .net = plan_net() };
        struct sandbox sb = { .net = *n };

        return sandbox_net_verify(&sb, &plan, &control, e) == 0 || said(e);
}

static bool pool_works(void *arg) {
        struct netns got[2 * SIZE], none;
        struct netpool *p = NULL;
        struct err e = { 0 };
        uint64_t seen[2 * SIZE];

        (void) arg;
        if (netpool_new(SIZE, &p, &e) < 0)
                return said(&e);
        if (netpool_ready(p) != 0 || netpool_take(p, &none) != -EAGAIN || netpool_fd(p) != -1)
                return false;
        for (unsigned round = 0; round < 2; round++) {
                for (int twice = 0; twice < 2; twice++) /* the second finds somebody at it */
                        if (netpool_fill(p, &e) < 0)
                                return said(&e);
                if (netpool_fd(p) < 0 || netpool_collect(p, &e) < 0)
                        return said(&e);
                if (netpool_ready(p) != SIZE || netpool_fd(p) != -1)
                        return false;
                if (netpool_fill(p, &e) < 0 || netpool_fd(p) != -1) /* full: nothing to do */
                        return false;
                for (unsigned i = 0; i < SIZE; i++)
                        if (netpool_take(p, &got[round * SIZE + i]) < 0 || !is_whole(&got[round * SIZE + i], &e))
                                return false;
                if (netpool_take(p, &none) != -EAGAIN)
                        return false;
        }
        for (unsigned i = 0; i < 2 * SIZE; i++) {
                seen[i] = number_of(got[i].ns_fd);
                for (unsigned k = 0; k < i; k++)
                        if (seen[i] == seen[k] || seen[i] == 0)
                                return false; /* recycled */
        }
        for (unsigned i = 0; i < 2 * SIZE; i++)
                netpool_drop(&got[i]);
        if (got[0].ns_fd != -1)
                return false;
        return netpool_free(p) == NULL;
}

static void each_namespace_is_whole_and_given_out_once(void **state) {
        (void) state;
        namespaces_needed();
        assert_true(namespaces_try(false, pool_works, NULL));
        assert_true(namespaces_try(true, pool_works, NULL));
}

/* The end of a fill can be waited for by a poll loop, and what is ready can be taken before. */
static bool fill_is_beside(void *arg) {
        struct netpool *p = NULL;
        struct err e = { 0 };
        struct netns n;
        struct pollfd f;

        (void) arg;
        if (netpool_new(SIZE, &p, &e) < 0 || netpool_fill(p, &e) < 0)
                return said(&e);
        while (netpool_take(p, &n) == -EAGAIN)
                ;
        f = (struct pollfd){ .fd = netpool_fd(p), .events = POLLIN };
        if (poll(&f, 1, 5000) != 1 || netpool_collect(p, &e) < 0)
                return said(&e);
        if (netpool_ready(p) != SIZE - 1 || !is_whole(&n, &e))
                return false;
        netpool_drop(&n);
        return netpool_free(p) == NULL;
}

static void a_fill_runs_beside_its_owner(void **state) {
        (void) state;
        namespaces_needed();
        assert_true(namespaces_try(false, fill_is_beside, NULL));
        assert_true(namespaces_try(true, fill_is_beside, NULL));
}

static bool nothing_stays_open(void *arg) {
        int before = dup(0), after;
        struct netpool *p = NULL;
        struct err e = { 0 };

        (void) arg;
        (void) close(before);
        if (netpool_new(SIZE, &p, &e) < 0 || netpool_fill(p, &e) < 0)
                return said(&e);
        (void) netpool_free(p); /* while the filler is at work */
        after = dup(0);
        return before == after;
}

static void a_pool_that_is_freed_leaves_no_descriptor(void **state) {
        (void) state;
        namespaces_needed();
        assert_true(namespaces_try(false, nothing_stays_open, NULL));
}

static void sizes_out_of_range_are_refused(void **state) {
        struct netpool *p = NULL;
        struct err e = { 0 };

        (void) state;
        assert_int_equal(netpool_new(0, &p, &e), -EINVAL);
        assert_int_equal(netpool_new(NETPOOL_MAX + 1, &p, &e), -EINVAL);
        assert_null(netpool_free(NULL));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_namespace_is_whole_and_given_out_once),
                cmocka_unit_test(a_fill_runs_beside_its_owner),
                cmocka_unit_test(a_pool_that_is_freed_leaves_no_descriptor),
                cmocka_unit_test(sizes_out_of_range_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
