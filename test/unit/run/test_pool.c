/*
 * test_pool.c - a sandbox that is given a network namespace from the pool is in that one, and everything is read back
 * as if it had been made on the spot. Egress is not there: its part is tested in test/integration. Needs root.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "base/err.h"
#include "base/own.h"
#include "evidence/evidence.h"
#include "policy/net_flags.h"
#include "sandbox/netpool.h"

static struct policy policy;
static struct plan plan;
static struct sandbox sb;
static struct evidence evidence;

static bool ok(int r, const struct err *e) {
        if (r < 0)
                (void) printf("%s\n", e->msg);
        return r >= 0;
}

static void compile(struct err *e) {
        const struct plan_request request = { 0 };
        struct plan_facts facts;

        policy_default(&policy);
        assert_true(ok(policy_net_flag_allow(&policy, "a.example", e), e));
        assert_true(ok(sandbox_facts(&facts, e), e));
        assert_true(ok(plan_compile(&policy, &request, &facts, &plan, e), e));
        for (size_t i = 0; i < plan.n_mounts; i++)
                plan.mounts[i].fd = -1;
}

/* Somebody adds a route while the sandbox lives. */
static void extra_route(int fd) {
        struct {
                struct nlmsghdr head;
                struct rtmsg route;
                struct rtattr to;
                uint8_t address[4];
                struct rtattr out;
                uint32_t link;
        } m = {
                .head = { .nlmsg_len = sizeof(m),
                          .nlmsg_type = RTM_NEWROUTE,
                          .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE },
                .route = { .rtm_family = AF_INET,
                           .rtm_dst_len = 24,
                           .rtm_table = RT_TABLE_MAIN,
                           .rtm_protocol = RTPROT_STATIC,
                           .rtm_type = RTN_UNICAST },
                .to = { sizeof(m.to) + 4, RTA_DST },
                .address = { 192, 0, 2, 0 },
                .out = { sizeof(m.out) + 4, RTA_OIF },
                .link = 1,
        };

        assert_int_equal(send(fd, &m, sizeof(m), 0), sizeof(m));
}

static void a_sandbox_lives_in_the_namespace_from_the_pool(void **state) {
        static const char *const argv[] = { "/bin/true", NULL }, *const env[] = { NULL };
        struct sandbox_request request = { .argv = argv,
                                           .envp = env,
                                           .cwd = "/",
                                           .no_stdin = true,
                                           .output_credit = 4096,
                                           .agent = gabion_agent_image,
                                           .agent_bytes = gabion_agent_image_size };
        struct netpool *pool = NULL;
        struct netns slot;
        struct err e = { 0 };
        struct stat st;
        char want[32];
        bool rootless;

        (void) state;
        if (geteuid() != 0) {
                (void) printf("needs root\n");
                skip();
        }
        assert_true(ok(sandbox_enter(&rootless, &e), &e));
        compile(&e);
        assert_true(ok(netpool_new(1, &pool, &e), &e));
        assert_true(ok(netpool_fill(pool, &e), &e));
        assert_true(ok(netpool_collect(pool, &e), &e));
        assert_int_equal(netpool_take(pool, &slot), 0);
        assert_int_equal(fstat(slot.ns_fd, &st), 0);
        (void) snprintf(want, sizeof(want), "net:[%llu]", (unsigned long long) st.st_ino);
        request.net = &slot;
        assert_true(ok(sandbox_start(&plan, &request, &sb, &e), &e));
        assert_int_equal(slot.ns_fd, -1); /* it is the sandbox's now */
        assert_true(ok(evidence_read_early(&plan, &sb, &evidence, &e), &e));
        assert_true(ok(sandbox_wait(&sb, &e), &e));
        assert_true(ok(evidence_read(&plan, &sb, &evidence, &e), &e));
        assert_string_equal(evidence.ns[3], want);
        assert_true(ok(evidence_network(&plan, &sb, &e), &e));
        extra_route(sb.net.route_fd);
        assert_int_equal(evidence_network(&plan, &sb, &e), -EBADE);
        assert_non_null(strstr(e.msg, "control network routes is not in force: there is a route to 192.0.2.0/24"));
        assert_int_equal(strncmp(evidence.rules_hash, "sha256:", 7), 0);
        assert_true(ok(sandbox_end(&sb, &e), &e));
        assert_int_equal(sb.net.ns_fd, -1);
        assert_null(netpool_free(pool));
        policy_done(&policy);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_sandbox_lives_in_the_namespace_from_the_pool),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
