/*
 * network.c - the network of a sandbox that has one: the namespace against the plan, who holds its listeners, and
 * attempts that must be refused.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "evidence/read.h"
#include "json/json.h"
#include "policy/net.h"

/* What was read belongs to the namespace that the agent is in. */
static int same_namespace(const struct reader *rd, struct err *err) {
        char path[] = "ns/net", text[32];
        char want[32] = "";
        struct stat st;
        ssize_t n = readlinkat(rd->agent_fd, path, want, sizeof(want) - 1);

        if (n <= 0 || fstat(rd->sb->net.ns_fd, &st) < 0)
                return read_mismatch(err, "network", "the namespace cannot be read");
        (void) snprintf(text, sizeof(text), "net:[%llu]", (unsigned long long) st.st_ino);
        return str_eq(text, want) ? 0 : read_mismatch(err, "network", "the agent is in another namespace");
}

int read_way_out(const struct reader *rd, struct err *err) {
        CLEANUP(buf_done) struct buf rules = BUF_INIT(16384);
        const char *control = "network";
        struct err e = { 0 };
        int r;

        if (!rd->plan->net)
                return 0;
        r = same_namespace(rd, err);
        if (r < 0)
                return r;
        if (sandbox_net_verify(rd->sb, rd->plan, &control, &e) < 0)
                return read_mismatch(err, control, "%s", e.msg);
        /* What nft lists for this table: the comparison found nothing else. */
        plan_net_rules_text(rd->plan->net, &rules);
        hash_text(rd->ev->rules_hash, buf_str(&rules), rules.len);
        return 0;
}

int evidence_network(const struct plan *plan, const struct sandbox *sb, struct err *err) {
        static struct evidence scratch; /* large */
        struct reader rd = { .plan = plan, .sb = sb, .ev = &scratch, .pid_fd = -1 };
        AUTO_FD int agent_fd = -1;
        char path[16];
        int r;

        (void) snprintf(path, sizeof(path), "%d", (int) sb->agent_pid);
        rd.agent_fd = agent_fd = openat(sb->proc_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (agent_fd < 0)
                return read_mismatch(err, "process", "the agent is gone");
        r = read_network(&rd, err);
        return r < 0 ? r : read_way_out(&rd, err);
}

static void dir_closep(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

/* How many of the listeners a process holds; negative if it cannot be seen. */
static int held_by(const struct sandbox *sb, pid_t pid) {
        CLEANUP(dir_closep) DIR *dir = NULL;
        struct dirent *d;
        char text[64];
        int fd, n = 0;

        (void) snprintf(text, sizeof(text), "%d/fd", (int) pid);
        fd = openat(sb->proc_fd, text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir) {
                int code = -errno;

                own_closep(&fd);
                return code;
        }
        while ((d = readdir(dir))) {
                ssize_t k = readlinkat(dirfd(dir), d->d_name, text, sizeof(text) - 1);
                char want[48];

                text[k > 0 ? k : 0] = '\0';
                for (size_t i = 0; k > 0 && i < PLAN_NET_SOCKETS; i++) {
                        (void) snprintf(want, sizeof(want), "socket:[%llu]", (unsigned long long) sb->net.inodes[i]);
                        n += str_eq(text, want);
                }
        }
        return n;
}

int evidence_canary(const struct plan *plan, struct sandbox *sb, struct evidence *ret, struct err *err) {
        struct err e = { 0 };
        int n;

        if (!plan->net)
                return 0;
        n = held_by(sb, sb->egress_pid);
        if (n == -EACCES || n == -EPERM)
                ret->listeners_note = "the kernel shows egress' descriptors to host root only";
        else if (n != PLAN_NET_SOCKETS)
                return read_mismatch(err, "network listeners", "egress holds %d of %d", n < 0 ? 0 : n,
                                     PLAN_NET_SOCKETS);
        if (sandbox_net_canary(sb, plan, &e) < 0)
                return read_mismatch(err, "network canary", "%s", e.msg);
        ret->canaries = PLAN_NET_CANARIES;
        return 0;
}

void put_network(struct json_emit *e, const struct plan *plan, const struct sandbox *sb, const struct evidence *ev) {
        json_emit_object(e, "network");
        if (plan->net) {
                const struct policy *ceiling = plan->way_out.ceiling;

                json_emit_int(e, "canaries_refused", ev->canaries);
                if (ceiling)
                        json_emit_tree(e, "ceiling", policy_net_json(ceiling));
                else
                        json_emit_text(e, "ceiling", NULL);
                json_emit_str(e, "egress", "by policy");
                json_emit_int(e, "egress_pid", sb->egress_pid);
                json_emit_str(e, "interfaces", ev->net_devices);
                json_emit_str(e, "listeners", ev->listeners_note ? ev->listeners_note : "held by egress");
                json_emit_tree(e, "namespace", plan_net_json(plan->net));
                json_emit_bool(e, "opens_tls", policy_net_opens_tls(plan->policy, ceiling));
                json_emit_tree(e, "policy", policy_net_json(plan->policy));
                json_emit_str(e, "rules", ev->rules_hash);
        } else {
                json_emit_str(e, "egress", "none");
                json_emit_str(e, "interfaces", ev->net_devices);
        }
        json_emit_close(e, '}');
}
