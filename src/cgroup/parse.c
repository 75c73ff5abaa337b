/*
 * parse.c - see parse.h. No system calls, no allocation. Nothing is written past a given capacity, and whatever does
 * not fit or does not decode is left out, never cut: half a path would name another group.
 */
#include "parse.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"

struct span {
        const char *p;
        size_t n;
};

static const char *const ctl_names[CGROUP_CTLS][2] = {
        [CGROUP_MEMORY] = { "memory", "memory" }, [CGROUP_CPU] = { "cpu", "cpu" },
        [CGROUP_PIDS] = { "pids", "pids" },       [CGROUP_IO] = { "blkio", "io" },
        [CGROUP_FREEZER] = { "freezer", NULL },   [CGROUP_CPUACCT] = { "cpuacct", NULL },
};

const char *cgroup_ctl_name(enum cgroup_ctl ctl, bool v2) {
        return ctl_names[ctl][v2];
}

static bool span_is(struct span s, const char *text) {
        return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

/* Cuts the next piece up to `sep` off *rest. False when nothing is left. */
static bool span_next(struct span *rest, char sep, struct span *ret) {
        const char *at;

        if (!rest->p)
                return false;
        at = memchr(rest->p, sep, rest->n);
        *ret = (struct span){ rest->p, at ? (size_t) (at - rest->p) : rest->n };
        if (at) {
                rest->n -= ret->n + 1;
                rest->p = at + 1;
        } else {
                *rest = (struct span){ NULL, 0 };
        }
        return true;
}

static unsigned span_ctls(struct span list, char sep, bool v2) {
        unsigned found = 0;
        struct span word;

        while (span_next(&list, sep, &word))
                for (unsigned i = 0; i < CGROUP_CTLS; i++)
                        if (ctl_names[i][v2] && span_is(word, ctl_names[i][v2]))
                                found |= BIT(i);
        return found;
}

/* One \ooo escape; 0 (which no path can hold) if it is not one. */
static char unescape(struct span s) {
        unsigned v = 0;

        if (s.n < 4 || s.p[0] != '\\')
                return 0;
        for (size_t i = 1; i < 4; i++) {
                unsigned d = (unsigned) (s.p[i] - '0');

                if (d > 7)
                        return 0;
                v = v * 8 + d;
        }
        return v > 255 ? 0 : (char) v;
}

/* An absolute path with the escapes of mountinfo (\040 for a blank) undone. */
static int path_add(struct cgroup_layout *l, struct span s, const char **ret) {
        char *dst = l->paths + l->used;
        size_t n = 0;

        if (s.n == 0 || s.p[0] != '/')
                return -EINVAL;
        if (sizeof(l->paths) - l->used < CGROUP_PATH)
                return -ENAMETOOLONG;
        for (size_t i = 0; i < s.n; n++) {
                char c = s.p[i];

                if (n == CGROUP_PATH - 1)
                        return -ENAMETOOLONG;
                if (c == '\\') {
                        c = unescape((struct span){ s.p + i, s.n - i });
                        if (!c)
                                return -EINVAL;
                        i += 3;
                }
                i++;
                dst[n] = c;
        }
        dst[n] = '\0';
        l->used += n + 1;
        *ret = dst;
        return 0;
}

/* One line: "id parent dev ROOT POINT opts [optional...] - TYPE source SUPEROPTS". */
static int parse_mount(struct cgroup_layout *l, struct span line, struct cgroup_mount *ret) {
        struct span word, root = { 0 }, point = { 0 }, type, source, options;

        for (int i = 0; i < 6; i++) {
                if (!span_next(&line, ' ', &word))
                        return -EINVAL;
                if (i == 3)
                        root = word;
                if (i == 4)
                        point = word;
        }
        do {
                if (!span_next(&line, ' ', &word))
                        return -EINVAL;
        } while (!span_is(word, "-"));
        if (!span_next(&line, ' ', &type) || !span_next(&line, ' ', &source) || !span_next(&line, ' ', &options))
                return -EINVAL;
        ret->v2 = span_is(type, "cgroup2");
        if (!ret->v2 && !span_is(type, "cgroup"))
                return -ENOENT;
        ret->ctls = ret->v2 ? 0 : span_ctls(options, ',', false);
        if (!ret->v2 && !ret->ctls)
                return -ENOENT;
        return path_add(l, root, &ret->root) < 0 ? -EINVAL : path_add(l, point, &ret->point);
}

static void layout_add(struct cgroup_layout *l, const struct cgroup_mount *m) {
        static const char usual[] = "/sys/fs/cgroup";

        for (size_t i = 0; i < l->n; i++) {
                struct cgroup_mount *have = &l->mounts[i];

                if (have->v2 != m->v2 || have->ctls != m->ctls)
                        continue;
                if (str_eq(have->point, m->point) ||
                    (!str_has_prefix(have->point, usual) && str_has_prefix(m->point, usual)))
                        *have = *m;
                return;
        }
        if (l->n < CGROUP_MOUNTS)
                l->mounts[l->n++] = *m;
}

void cgroup_parse_mountinfo(const char *text, struct cgroup_layout *ret) {
        struct span rest = { text, strlen(text) }, line;
        struct cgroup_mount m;

        ret->n = ret->used = 0;
        while (span_next(&rest, '\n', &line))
                /* Most lines are other file systems: this test is what keeps a host with 1000 mounts fast. */
                if (memmem(line.p, line.n, " cgroup", 7) && parse_mount(ret, line, &m) == 0)
                        layout_add(ret, &m);
}

int cgroup_parse_member(const char *text, bool v2, enum cgroup_ctl ctl, char *dst, size_t cap) {
        struct span rest = { text, strlen(text) }, line, id, list;

        while (span_next(&rest, '\n', &line)) {
                if (!span_next(&line, ':', &id) || !span_next(&line, ':', &list) || !line.p)
                        continue;
                if (v2 ? !(span_is(id, "0") && list.n == 0) : !(span_ctls(list, ',', false) & BIT(ctl)))
                        continue;
                /* What is left is the path, and that may hold colons itself. */
                if (line.n == 0 || line.p[0] != '/')
                        return -EINVAL;
                if (line.n >= cap)
                        return -ENAMETOOLONG;
                memcpy(dst, line.p, line.n);
                dst[line.n] = '\0';
                return 0;
        }
        return -ENOENT;
}

/* Does a path hold a ".." component? The kernel shows one for groups outside of the cgroup namespace. */
static bool path_leaves(const char *path) {
        struct span rest = { path, strlen(path) }, word;

        while (span_next(&rest, '/', &word))
                if (span_is(word, ".."))
                        return true;
        return false;
}

int cgroup_parse_home(const char *root, const char *own, char *dst, size_t cap) {
        static const char leaf[] = "/" CGROUP_SUPERVISOR;
        size_t n_root = str_eq(root, "/") ? 0 : strlen(root);
        size_t n = strlen(own);

        if (path_leaves(root) || path_leaves(own))
                return -ENOENT;
        if (strncmp(own, root, n_root) != 0 || (own[n_root] != '/' && own[n_root] != '\0'))
                return -ENOENT;
        if (n >= n_root + strlen(leaf) && str_eq(own + n - strlen(leaf), leaf))
                n -= strlen(leaf);
        own += n_root;
        n -= n_root;
        while (n > 0 && *own == '/') {
                own++;
                n--;
        }
        if (n >= cap)
                return -ENAMETOOLONG;
        memcpy(dst, own, n);
        dst[n] = '\0';
        return 0;
}

int cgroup_parse_key(const char *text, const char *key, uint64_t *ret) {
        struct span rest = { text, strlen(text) }, line, word;
        char number[24];

        while (span_next(&rest, '\n', &line)) {
                if (!span_next(&line, ' ', &word) || !span_is(word, key) || !line.p)
                        continue;
                if (line.n >= sizeof(number))
                        return -EINVAL;
                memcpy(number, line.p, line.n);
                number[line.n] = '\0';
                return str_to_u64(number, UINT64_MAX, ret);
        }
        return -ENOENT;
}

unsigned cgroup_parse_controllers(const char *text) {
        struct span line, rest = { text, strlen(text) };

        return span_next(&rest, '\n', &line) ? span_ctls(line, ' ', true) : 0;
}

bool cgroup_parse_has_word(const char *text, const char *first, const char *word) {
        struct span rest = { text, strlen(text) }, line, w;

        while (span_next(&rest, '\n', &line)) {
                if (!span_next(&line, ' ', &w) || !span_is(w, first))
                        continue;
                while (span_next(&line, ' ', &w))
                        if (span_is(w, word))
                                return true;
        }
        return false;
}
