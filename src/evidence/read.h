/* read.h - one comparison. Private to evidence/. */
#pragma once

#include "base/err.h"
#include "evidence/evidence.h"
#include "plan/plan.h"
#include "sandbox/sandbox.h"

struct reader {
        const struct plan *plan;
        const struct sandbox *sb;
        struct evidence *ev;
        int pid_fd; /* /proc/COMMAND of the host */
        int agent_fd;
        int status_fd, list_fd;  /* files of the command that are open already; -1: not */
        const char *filter_hash; /* of its filter, if that was read before */
};

/* "control NAME: ..., refusing to start", with the code that means a failed read-back. */
int read_mismatch(struct err *err, const char *control, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* /proc/PID of the host. */
int read_open(const struct sandbox *sb, pid_t pid);
/* Everything that can be read again at any time: disk, namespaces, maps, mounts, groups, network, clocks. */
int read_place(const struct reader *rd, struct err *err);
int read_mounts(const struct reader *rd, struct err *err);
/* filter.c: in two parts, because the command must stop for it. The second is owed, whatever happens in between. */
long filter_ask(const struct sandbox *sb);
int filter_read(const struct reader *rd, long asked, struct err *err);
int read_network(const struct reader *rd, struct err *err);
/* network.c */
int read_way_out(const struct reader *rd, struct err *err);
struct json_emit;
void put_network(struct json_emit *e, const struct plan *plan, const struct sandbox *sb, const struct evidence *ev);
