/*
 * level.c - which levels of the UK AI Security Institute's sandboxing protocol a run supports. docs/isolation.md has
 * the levels in words, and where they come from. Only facts of this run count; what it did not see is not claimed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "prove/names.h"

static void set(struct prove_level *ret, int level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void set(struct prove_level *ret, int level, const char *fmt, ...) {
        va_list ap;

        ret->level = level;
        va_start(ap, fmt);
        (void) vsnprintf(ret->why, sizeof(ret->why), fmt, ap);
        va_end(ap);
}

void prove_host_level(const struct prove_report *r, struct prove_level *ret) {
        static const unsigned must = BIT(1) | BIT(PROVE_MOUNT_NS) | BIT(4) | BIT(5); /* pid, mnt, ipc, uts */
        const struct prove_posture *p = &r->posture;

        if (!p->seen) {
                set(ret, -1,
                    "no process of this machine runs the probe: another kernel does, or /proc is closed to us");
                return;
        }
        for (unsigned i = 0; i < PROVE_NS; i++)
                if ((must & ~p->ns_new) & BIT(i)) {
                        set(ret, p->ns_known & BIT(i) ? 0 : -1, "the %s namespace is %s", prove_ns_names[i],
                            p->ns_known & BIT(i) ? "the host's" : "not readable");
                        return;
                }
        set(ret, 1,
            "a container on this machine: own pid, mount, ipc and uts namespaces, %zu critical or high findings; the kernel "
            "is the host's, so neither H2 (remote) nor H3 (virtual machine)",
            prove_count(r, PROVE_CRIT, 0) + prove_count(r, PROVE_HIGH, 0));
}

static bool has_egress(const struct prove_report *r) {
        CLEANUP(json_freep) struct json *doc = NULL;
        struct err err = { 0 };
        const char *egress;

        if (!r->evidence[0] || json_parse("evidence", r->evidence, strlen(r->evidence), &doc, &err) < 0)
                return false;
        egress = json_get_str(json_get(doc, "network"), "egress");
        return egress && !str_eq(egress, "none");
}

void prove_network_level(const struct prove_report *r, struct prove_level *ret) {
        const struct prove_posture *p = &r->posture;
        size_t found =
                prove_count(r, PROVE_CRIT, 'H') + prove_count(r, PROVE_HIGH, 'H') + prove_count(r, PROVE_MED, 'H');

        if (!prove_is_tried(r, 'H'))
                set(ret, -1, "the network was not tried");
        else if ((p->ns_known & ~p->ns_new) & BIT(PROVE_NET_NS))
                set(ret, 0, "the network namespace is the host's");
        else if (found > 0)
                set(ret, 0, "%zu attempts of group H got through", found);
        else if (has_egress(r))
                set(ret, 1, "the policy lists what may be reached; no attempt of group H reached anything else");
        else
                set(ret, 2, "no external network: no attempt of group H got through%s",
                    p->ns_new & BIT(PROVE_NET_NS) ? ", and the network namespace is its own" : "");
}
