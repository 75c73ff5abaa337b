/*
 * observe.c - finds the processes of an attack in the host's /proc and reads what the kernel says of them.
 *
 * The probe's arguments hold a random name, so its processes are known by it wherever they live. A sandbox with a
 * kernel of its own has no such process; then the posture says so, and nothing is guessed.
 */
#include "prove/observe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "json/json.h"
#include "prove/names.h"

enum { ARGUMENTS = 16384, PATIENCE_MS = 2000, STEP_MS = 20 };

struct process {
        pid_t pid;
        int fd; /* its directory */
        size_t n;
        char args[ARGUMENTS]; /* NUL between the words */
};

static bool is_number(const char *s) {
        return *s && strspn(s, "0123456789") == strlen(s);
}

/* Calls fn for each process of this machine that we may look at, until it returns true. */
static void each(bool (*fn)(const struct process *p, void *arg), void *arg) {
        static struct process p;
        DIR *dir = opendir("/proc");
        const struct dirent *e;
        bool done = false;

        while (!done && dir && (e = readdir(dir))) {
                AUTO_FD int fd =
                        is_number(e->d_name) ? openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
                uint64_t pid;
                int n;

                if (fd < 0 || str_to_u64(e->d_name, INT32_MAX, &pid) < 0)
                        continue;
                n = fd_read_at(fd, "cmdline", p.args, sizeof(p.args)); /* none of a zombie or a kernel thread */
                p.pid = (pid_t) pid;
                p.fd = fd;
                p.n = n == -EFBIG ? sizeof(p.args) - 1 : n < 0 ? 0 : (size_t) n;
                done = fn(&p, arg);
        }
        if (dir)
                (void) closedir(dir);
}

static bool has_name(const struct process *p, const char *name) {
        return memmem(p->args, p->n, name, strlen(name)) != NULL;
}

static bool is_probe(const struct process *p, const char *name) {
        const char *slash = strrchr(p->args, '/');

        return p->n > 0 && has_name(p, name) && str_eq(slash ? slash + 1 : p->args, "probe");
}

static bool status_read(const struct process *p, struct evidence_status *ret) {
        char text[4096];

        return fd_read_at(p->fd, "status", text, sizeof(text)) > 0 && evidence_parse_status(text, ret) == 0;
}

static bool link_read(int dir_fd, const char *path, char dst[64]) {
        ssize_t n = readlinkat(dir_fd, path, dst, 63);

        dst[n > 0 ? n : 0] = '\0';
        return n > 0;
}

struct posture_search {
        const char *name;
        struct prove_posture *ret;
        pid_t pid;
};

/* Each attempt is a child with the same arguments; the oldest, which has the lowest number unless numbers have just
 * started anew, is the program itself. */
static bool on_posture(const struct process *p, void *arg) {
        struct posture_search *s = arg;
        struct prove_posture got = { .seen = true };

        if (!is_probe(p, s->name) || (s->pid != 0 && p->pid > s->pid) || !status_read(p, &got.status))
                return false;
        if (fd_read_at(p->fd, "uid_map", got.uid_map, sizeof(got.uid_map)) < 0)
                got.uid_map[0] = '\0';
        for (unsigned i = 0; i < PROVE_NS; i++) {
                char path[32], theirs[64], ours[64], self[48];

                (void) snprintf(path, sizeof(path), "ns/%s", prove_ns_names[i]);
                (void) snprintf(self, sizeof(self), "/proc/self/%s", path);
                if (!link_read(p->fd, path, theirs) || !link_read(AT_FDCWD, self, ours))
                        continue;
                got.ns_known |= BIT(i);
                got.ns_new |= str_eq(theirs, ours) ? 0 : BIT(i);
        }
        *s->ret = got;
        s->pid = p->pid;
        return false;
}

void observe_posture(const char *name, struct prove_posture *ret) {
        struct posture_search s = { .name = name, .ret = ret };

        *ret = (struct prove_posture){ 0 };
        each(on_posture, &s);
}

void observe_statement(const struct json *statement, struct prove_posture *p) {
        const struct json *all = json_get(statement, "namespaces");

        for (unsigned i = 0; i < PROVE_NS; i++) {
                const struct json *one = json_get(all, prove_ns_names[i]);
                const char *ours = json_get_str(one, "host"), *theirs = json_get_str(one, "sandbox");

                if (p->ns_known & BIT(i) || !ours || !theirs)
                        continue;
                p->ns_known |= BIT(i);
                p->ns_new |= str_eq(ours, theirs) ? 0 : BIT(i);
        }
}

bool observe_range(const struct prove_posture *p, uint64_t *ret_base, uint64_t *ret_size) {
        uint64_t v[3];
        const char *at = p->uid_map;

        for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
                char word[16];
                size_t n;

                at += strspn(at, " \t");
                n = strspn(at, "0123456789");
                (void) snprintf(word, sizeof(word), "%.*s", (int) n, at);
                if (str_to_u64(word, UINT32_MAX, &v[i]) < 0)
                        return false;
                at += n;
        }
        *ret_base = v[1];
        *ret_size = v[2];
        /* The machine's root, or the caller, has processes that have nothing to do with this. */
        return p->seen && v[1] != 0 && !(getuid() >= v[1] && getuid() - v[1] < v[2]);
}

static bool on_kill(const struct process *p, void *arg) {
        if (p->pid != getpid() && has_name(p, arg))
                (void) kill(p->pid, SIGKILL);
        return false;
}

void observe_kill(const char *name) {
        each(on_kill, (void *) (uintptr_t) name);
}

struct left_search {
        const char *name;
        uint64_t base, size;
        size_t n;
};

static bool on_left(const struct process *p, void *arg) {
        struct left_search *s = arg;
        struct evidence_status st;

        s->n += has_name(p, s->name) ||
                (s->size > 0 && status_read(p, &st) && st.uid[0] >= s->base && st.uid[0] - s->base < s->size);
        return false;
}

size_t observe_left(const char *name, const struct prove_posture *p) {
        struct left_search s = { .name = name };

        if (!p || !observe_range(p, &s.base, &s.size))
                s.size = 0;
        for (int ms = 0; ms <= PATIENCE_MS; ms += STEP_MS) {
                s.n = 0;
                each(on_left, &s);
                if (s.n == 0)
                        break;
                (void) usleep(STEP_MS * 1000);
        }
        return s.n;
}
