/*
 * read.c - the read-back: a table of controls, each read from the kernel and compared with the plan.
 *
 * Reads the host's /proc for the waiting command and its agent; the command's own view came over the gate and must
 * say the same. The first difference ends the start.
 */
#include "evidence/read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"

int read_mismatch(struct err *err, const char *control, const char *fmt, ...) {
        char detail[200];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(detail, sizeof(detail), fmt, ap);
        va_end(ap);
        return err_set(err, -EBADE, ERR_DENIED, "control %s is not in force: %s; nothing was started", control, detail);
}

static int compare_status(const struct reader *rd, const struct evidence_status *s, uint64_t uid, uint64_t gid,
                          const char *side, struct err *err) {
        const struct {
                const char *name;
                uint64_t value;
        } sets[] = { { "CapInh", s->inheritable },
                     { "CapPrm", s->permitted },
                     { "CapEff", s->effective },
                     { "CapBnd", s->bounding },
                     { "CapAmb", s->ambient } };

        (void) rd;
        for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
                if (sets[i].value != 0)
                        return read_mismatch(err, "capabilities", "%s is %llx %s", sets[i].name,
                                             (unsigned long long) sets[i].value, side);
        if (s->no_new_privs != 1)
                return read_mismatch(err, "no_new_privs", "it is off %s", side);
        if (s->seccomp != 2 || s->seccomp_filters != 1)
                return read_mismatch(err, "seccomp", "mode %llu, %llu filters %s", (unsigned long long) s->seccomp,
                                     (unsigned long long) s->seccomp_filters, side);
        for (unsigned i = 0; i < 4; i++)
                if (s->uid[i] != uid || s->gid[i] != gid)
                        return read_mismatch(err, "ids", "uid %llu, gid %llu %s", (unsigned long long) s->uid[i],
                                             (unsigned long long) s->gid[i], side);
        if (s->has_groups)
                return read_mismatch(err, "ids", "supplementary groups are left %s", side);
        return 0;
}

static int read_status(const struct reader *rd, struct err *err) {
        char text[4096];
        uint64_t uid = sandbox_host_uid(rd->sb, rd->plan->uid), gid = sandbox_host_uid(rd->sb, rd->plan->gid);
        int r = rd->status_fd >= 0 ? fd_read_upto(rd->status_fd, text, sizeof(text))
                                   : fd_read_at(rd->pid_fd, "status", text, sizeof(text));

        if (r >= 0)
                r = evidence_parse_status(text, &rd->ev->outside);
        if (r < 0)
                return read_mismatch(err, "capabilities", "status cannot be read: %s", strerror(-r));
        r = compare_status(rd, &rd->ev->outside, uid, gid, "(seen from the host)", err);
        if (r < 0)
                return r;
        r = evidence_parse_status(rd->sb->ready.status, &rd->ev->inside);
        if (r < 0)
                return read_mismatch(err, "capabilities", "the sandbox did not report its status");
        return compare_status(rd, &rd->ev->inside, rd->plan->uid, rd->plan->gid, "(seen from inside)", err);
}

static int read_securebits(const struct reader *rd, struct err *err) {
        rd->ev->securebits = rd->sb->ready.securebits;
        return rd->ev->securebits == PLAN_SECUREBITS ? 0 : read_mismatch(err, "securebits", "0x%x", rd->ev->securebits);
}

static const char *const ns_names[EVIDENCE_NS] = { "ns/user", "ns/pid", "ns/mnt",    "ns/net",
                                                   "ns/ipc",  "ns/uts", "ns/cgroup", "ns/time" };

/* Our own, which nobody who reads sandboxes ever leaves. */
static int host_namespaces(const struct reader *rd) {
        static char own[EVIDENCE_NS][sizeof(rd->ev->host_ns[0])];
        AUTO_FD int self = own[EVIDENCE_NS - 1][0] ? -1 : openat(rd->sb->proc_fd, "self", O_PATH | O_CLOEXEC);

        for (size_t i = 0; self >= 0 && i < EVIDENCE_NS; i++)
                if (readlinkat(self, ns_names[i], own[i], sizeof(own[0]) - 1) <= 0)
                        return -errno;
        memcpy(rd->ev->host_ns, own, sizeof(own));
        return own[EVIDENCE_NS - 1][0] ? 0 : -ENOENT;
}

/* The agent's namespaces are new ones. The time namespace is entered by exec, so until then it is the children's. */
static int read_namespaces(const struct reader *rd, struct err *err) {
        if (host_namespaces(rd) < 0)
                return read_mismatch(err, "namespace", "our own cannot be read");
        for (size_t i = 0; i < EVIDENCE_NS; i++) {
                const char *name = i == EVIDENCE_NS - 1 ? "ns/time_for_children" : ns_names[i];
                ssize_t n = readlinkat(rd->agent_fd, name, rd->ev->ns[i], sizeof(rd->ev->ns[0]) - 1);

                if (n <= 0)
                        return read_mismatch(err, "namespace", "%s cannot be read", ns_names[i] + 3);
                if (str_eq(rd->ev->ns[i], rd->ev->host_ns[i]))
                        return read_mismatch(err, "namespace", "%s is the host's", ns_names[i] + 3);
        }
        return 0;
}

/*
 * The command is where the agent was, so what was read of maps, mounts, groups, network and clocks holds for it too: it
 * is the agent's child, and the agent (read_agent) has no capability by which it could have gone elsewhere. A user
 * namespace needs none to be left, so that one is compared; pid and mount namespaces, which matter most, as well.
 */
static int read_same_namespaces(const struct reader *rd, struct err *err) {
        enum { COMPARED = 3 };
        char text[sizeof(rd->ev->ns[0])] = "";

        for (size_t i = 0; i < COMPARED; i++) {
                ssize_t n = readlinkat(rd->pid_fd, ns_names[i], text, sizeof(text) - 1);

                text[n > 0 ? n : 0] = '\0';
                if (!str_eq(text, rd->ev->ns[i]))
                        return read_mismatch(err, "namespace", "%s of the command is another than the agent's",
                                             ns_names[i] + 3);
        }
        return 0;
}

/* Compares a map with the planned lines, blanks folded: "first host count". */
static int map_compare(const struct reader *rd, const char *text, const char *name, struct err *err) {
        uint32_t base = rd->sb->uid_base;
        char want[160];

        if (rd->sb->user_is_caller)
                (void) snprintf(want, sizeof(want), "%10u %10u %10u\n%10u %10u %10u\n%10u %10u %10u\n", 0u, base,
                                (unsigned) PLAN_USER, (unsigned) PLAN_USER, 0u, 1u, PLAN_USER + 1u,
                                base + PLAN_USER + 1u, PLAN_IDS - PLAN_USER - 2u);
        else
                (void) snprintf(want, sizeof(want), "%10u %10u %10u\n", 0u, base, (unsigned) PLAN_IDS);
        return str_eq(text, want) ? 0 : read_mismatch(err, name, "the map is not the planned one");
}

static int read_maps(const struct reader *rd, struct err *err) {
        int r = fd_read_at(rd->agent_fd, "uid_map", rd->ev->uid_map, sizeof(rd->ev->uid_map));

        if (r >= 0)
                r = fd_read_at(rd->agent_fd, "gid_map", rd->ev->gid_map, sizeof(rd->ev->gid_map));
        if (r < 0)
                return read_mismatch(err, "uid map", "it cannot be read: %s", strerror(-r));
        r = map_compare(rd, rd->ev->uid_map, "uid map", err);
        return r < 0 ? r : map_compare(rd, rd->ev->gid_map, "gid map", err);
}

static int read_groups(const struct reader *rd, struct err *err) {
        int r;

        if (!rd->sb->has_cgroup)
                return 0;
        r = cgroup_verify_member(&rd->sb->cgroup, rd->sb->proc_fd, rd->sb->agent_pid, err);
        return r < 0 ? err_wrap(err, "control cgroup is not in force; nothing was started") : 0;
}

static int read_rlimits(const struct reader *rd, struct err *err) {
        for (size_t i = 0; i < rd->plan->n_rlimits; i++) {
                const struct plan_rlimit *want = &rd->plan->rlimits[i];
                struct rlimit l;

                if (prlimit(rd->sb->command_pid, want->resource, NULL, &l) < 0)
                        return read_mismatch(err, "rlimit", "%s cannot be read: %s", want->name, strerror(errno));
                if (l.rlim_cur != want->value || l.rlim_max != want->value)
                        return read_mismatch(err, "rlimit", "%s is %llu", want->name, (unsigned long long) l.rlim_max);
        }
        return 0;
}

static int read_time(const struct reader *rd, struct err *err) {
        char want[32];
        const char *at;
        int r = fd_read_at(rd->agent_fd, "timens_offsets", rd->ev->time_offsets, sizeof(rd->ev->time_offsets));

        if (r < 0)
                return read_mismatch(err, "time namespace", "offsets cannot be read: %s", strerror(-r));
        (void) snprintf(want, sizeof(want), "%lld", (long long) rd->sb->time_offset_s);
        at = str_has_prefix(rd->ev->time_offsets, "monotonic") ? rd->ev->time_offsets + 9 : "";
        at += strspn(at, " ");
        if (!str_has_prefix(at, want))
                return read_mismatch(err, "time namespace", "the clocks are not offset");
        return 0;
}

int read_network(const struct reader *rd, struct err *err) {
        char text[4096];
        int r = fd_read_at(rd->agent_fd, "net/dev", text, sizeof(text));
        size_t n = 0;

        if (r < 0)
                return read_mismatch(err, "network", "interfaces cannot be read: %s", strerror(-r));
        for (const char *line = text; line; line = evidence_after(line, '\n')) {
                const char *start = line + strspn(line, " ");
                size_t len = strcspn(start, ":|\n");

                if (start[len] != ':')
                        continue;
                if (len != 2 || strncmp(start, "lo", 2) != 0)
                        return read_mismatch(err, "network", "there is an interface '%.*s'",
                                             (int) (len > 15 ? 15 : len), start);
                n++;
        }
        (void) snprintf(rd->ev->net_devices, sizeof(rd->ev->net_devices), "lo");
        return n == 1 ? 0 : read_mismatch(err, "network", "%zu loopback interfaces", n);
}

static int list_open(int pid_fd) {
        return openat(pid_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Entries of /proc/PID/fd. Since Linux 6.2 its size is their number; before, each is a short name, so that one read
 * shows far more than may be there. */
static int count_open(const struct reader *rd, unsigned *ret) {
        AUTO_FD int own_fd = rd->list_fd < 0 ? list_open(rd->pid_fd) : -1;
        int fd = rd->list_fd < 0 ? own_fd : rd->list_fd;
        char text[2048] __attribute__((aligned(8)));
        struct stat st;
        ssize_t n;

        if (fstat(fd, &st) < 0)
                return -errno;
        *ret = (unsigned) st.st_size;
        n = st.st_size > 0 ? 0 : getdents64(fd, (void *) text, sizeof(text));
        if (n < 0)
                return -errno;
        for (ssize_t at = 0; at < n;) {
                const struct dirent64 *d = (const struct dirent64 *) (text + at);

                *ret += d->d_name[0] != '.';
                at += d->d_reclen;
        }
        return 0;
}

/* The command holds standard input, output, error and its end of the pair, which closes on exec. */
static int read_descriptors(const struct reader *rd, struct err *err) {
        enum { EXPECTED = 4 };
        int r = sandbox_settle(rd->sb);

        if (r == 0)
                r = count_open(rd, &rd->ev->n_open);
        if (r < 0)
                return read_mismatch(err, "descriptors", "they cannot be listed: %s", strerror(-r));
        return rd->ev->n_open == EXPECTED ? 0 : read_mismatch(err, "descriptors", "%u are open", rd->ev->n_open);
}

static int read_agent(const struct reader *rd, struct err *err) {
        enum { KEPT = 1 << 6 | 1 << 7 | 1 << 8 | 1 << 5 };
        char text[4096];
        int r = fd_read_at(rd->agent_fd, "environ", text, sizeof(text));

        if (r != 0)
                return read_mismatch(err, "agent environment", r < 0 ? "it cannot be read: %s" : "it is not empty%s",
                                     r < 0 ? strerror(-r) : "");
        r = fd_read_at(rd->agent_fd, "status", text, sizeof(text));
        if (r >= 0)
                r = evidence_parse_status(text, &rd->ev->agent);
        if (r < 0)
                return read_mismatch(err, "agent capabilities", "status cannot be read: %s", strerror(-r));
        if ((rd->ev->agent.effective | rd->ev->agent.permitted) & ~(uint64_t) KEPT || rd->ev->agent.bounding ||
            rd->ev->agent.inheritable || rd->ev->agent.ambient)
                return read_mismatch(err, "agent capabilities", "CapPrm %llx, CapBnd %llx",
                                     (unsigned long long) rd->ev->agent.permitted,
                                     (unsigned long long) rd->ev->agent.bounding);
        return 0;
}

static int read_landlock(const struct reader *rd, struct err *err) {
        rd->ev->landlock_errno = rd->sb->ready.landlock_errno;
        rd->ev->scope_errno = rd->sb->ready.scope_errno;
        if (rd->plan->landlock_abi == 0)
                return 0;
        if (rd->ev->landlock_errno != EACCES)
                return read_mismatch(err, "landlock", "a file outside every rule answers %s",
                                     rd->ev->landlock_errno ? strerror(rd->ev->landlock_errno) : "by opening");
        if (rd->plan->landlock_scoped && rd->ev->scope_errno != EPERM)
                return read_mismatch(err, "landlock scope", "an abstract socket outside answers %s",
                                     rd->ev->scope_errno ? strerror(rd->ev->scope_errno) : "by connecting");
        return 0;
}

static int read_oom_score(const struct reader *rd, struct err *err) {
        char text[16];
        int r = fd_read_at(rd->pid_fd, "oom_score_adj", text, sizeof(text));

        if (r < 0 || !str_eq(text, "500\n"))
                return read_mismatch(err, "oom score", "it is %.*s", r > 0 ? r - 1 : 0, text);
        rd->ev->oom_score = PLAN_OOM_SCORE;
        return 0;
}

static int read_disk(const struct reader *rd, struct err *err) {
        struct statfs st;

        if (fstatfs(rd->sb->root_fd, &st) < 0)
                return read_mismatch(err, "disk limit", "it cannot be read: %s", strerror(errno));
        rd->ev->disk_bytes = (uint64_t) st.f_blocks * (uint64_t) st.f_bsize;
        if (rd->ev->disk_bytes != rd->plan->tmpfs_bytes)
                return read_mismatch(err, "disk limit", "%llu bytes", (unsigned long long) rd->ev->disk_bytes);
        return 0;
}

static int read_limits(const struct reader *rd, struct err *err) {
        if (rd->sb->has_cgroup && cgroup_verify(&rd->sb->cgroup, &rd->sb->cgroup_limits, err) < 0)
                return err_wrap(err, "control cgroup is not in force; nothing was started");
        return 0;
}

typedef int (*read_fn)(const struct reader *rd, struct err *err);

static int read_all(const struct reader *rd, const read_fn *controls, size_t n, struct err *err) {
        for (size_t i = 0; i < n; i++) {
                int r = controls[i](rd, err);

                if (r < 0)
                        return r;
        }
        return 0;
}

int read_open(const struct sandbox *sb, pid_t pid) {
        char path[16];

        (void) snprintf(path, sizeof(path), "%d", (int) pid);
        return openat(sb->proc_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* What is final before the agent starts. */
static const read_fn of_place[] = { read_namespaces, read_maps,    read_mounts, read_groups,
                                    read_network,    read_way_out, read_time };

int evidence_read_early(const struct plan *plan, const struct sandbox *sb, struct evidence *ret, struct err *err) {
        struct reader rd = { .plan = plan, .sb = sb, .ev = ret };
        AUTO_FD int agent_fd = -1;
        int r = read_limits(&rd, err);

        if (r == 0)
                r = read_disk(&rd, err);
        (void) host_namespaces(&rd); /* now, and not when there is something to compare it with */
        if (r == 0)
                r = sandbox_wait_built(sb, err);
        /* A rootless supervisor may not look at a process that still shares its memory and has changed its ids. */
        if (r < 0 || plan->rootless)
                return r;
        agent_fd = read_open(sb, sb->agent_pid);
        rd.agent_fd = agent_fd;
        return read_all(&rd, of_place, ARRAY_SIZE(of_place), err);
}

int read_place(const struct reader *rd, struct err *err) {
        int r = read_disk(rd, err);

        return r < 0 ? r : read_all(rd, of_place, ARRAY_SIZE(of_place), err);
}

/* What cannot change any more before the command has its filter: limits only go down, as does what the machine thinks
 * of it when memory is short; and the agent has settled. */
static const read_fn of_here[] = { read_rlimits, read_agent, read_oom_score };
static const read_fn of_command[] = { read_status, read_securebits, read_landlock, read_same_namespaces };

static int read_command(const struct reader *rd, struct err *err) {
        long asked = rd->filter_hash ? 0 : filter_ask(rd->sb);
        struct err other = { 0 };
        int r = read_all(rd, of_command, ARRAY_SIZE(of_command), err);
        int q = filter_read(rd, asked, r < 0 ? &other : err);

        if (r == 0)
                r = q;
        return r < 0 ? r : read_descriptors(rd, err);
}

static int reader_open(const struct plan *plan, const struct sandbox *sb, struct evidence *ev, struct reader *ret,
                       struct err *err) {
        *ret = (struct reader){ .plan = plan, .sb = sb, .ev = ev, .status_fd = -1, .list_fd = -1 };
        ret->pid_fd = read_open(sb, sb->command_pid);
        ret->agent_fd = read_open(sb, sb->agent_pid);
        return ret->pid_fd < 0 || ret->agent_fd < 0 ? read_mismatch(err, "process", "it is gone") : 0;
}

static void reader_close(const struct reader *rd) {
        const int fds[] = { rd->pid_fd, rd->agent_fd, rd->status_fd, rd->list_fd };

        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                if (fds[i] >= 0)
                        (void) close(fds[i]);
}

int evidence_read_again(const struct plan *plan, const struct sandbox *sb, const char *filter_hash,
                        struct evidence *ret, struct err *err) {
        struct reader rd;
        int r = reader_open(plan, sb, ret, &rd, err);

        rd.filter_hash = filter_hash;
        if (r == 0)
                r = read_limits(&rd, err);
        if (r == 0)
                r = read_place(&rd, err);
        if (r == 0)
                r = read_all(&rd, of_here, ARRAY_SIZE(of_here), err);
        if (r == 0)
                r = read_command(&rd, err);
        reader_close(&rd);
        return r;
}

int evidence_read_here(const struct plan *plan, const struct sandbox *sb, struct evidence *ret, struct err *err) {
        struct err ignored = { 0 };
        struct reader rd;
        int r = reader_open(plan, sb, ret, &rd, err);

        if (r == 0)
                r = read_all(&rd, of_here, ARRAY_SIZE(of_here), err);
        if (r < 0) {
                reader_close(&rd);
                return r;
        }
        /* These are read when the filter is on. Now the kernel makes the entries, which takes the most of it. */
        (void) read_same_namespaces(&rd, &ignored);
        ret->here = (struct evidence_here){ .pid = sb->command_pid,
                                            .pid_fd = rd.pid_fd,
                                            .agent_fd = rd.agent_fd,
                                            .status_fd = openat(rd.pid_fd, "status", O_RDONLY | O_CLOEXEC),
                                            .list_fd = list_open(rd.pid_fd) };
        return 0;
}

void evidence_forget(struct evidence *ev) {
        const struct evidence_here *h = &ev->here;

        if (h->pid > 0)
                reader_close(&(struct reader){ .pid_fd = h->pid_fd,
                                               .agent_fd = h->agent_fd,
                                               .status_fd = h->status_fd,
                                               .list_fd = h->list_fd });
        ev->here.pid = 0;
}

int evidence_read(const struct plan *plan, const struct sandbox *sb, struct evidence *ret, struct err *err) {
        const struct evidence_here *h = &ret->here;
        struct reader rd;
        int r = 0;

        if (h->pid != sb->command_pid) {
                evidence_forget(ret);
                r = evidence_read_here(plan, sb, ret, err);
                if (r < 0)
                        return r;
        }
        rd = (struct reader){ plan, sb, ret, h->pid_fd, h->agent_fd, h->status_fd, h->list_fd, NULL };
        if (plan->rootless)
                r = read_all(&rd, of_place, ARRAY_SIZE(of_place), err);
        return r < 0 ? r : read_command(&rd, err);
}
