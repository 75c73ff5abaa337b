/* read.c - reading a chain's files. No lock: a reader sees what the newest head covers, and that does not change. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "ledger/chain.h"
#include "ledger/pack.h"

enum { DIGITS = 12, READINGS = 20 };

void chain_file(char dst[CHAIN_FILE], uint64_t first) {
        (void) snprintf(dst, CHAIN_FILE, "%0*" PRIu64 ".log", DIGITS, first);
}

static int unreadable(struct err *err, const char *what, int code) {
        return err_set(err, code, code == -ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, "audit log: %.150s: %s", what,
                       strerror(-code));
}

int chain_dir(const char *dir, const char *tenant, struct err *err) {
        char path[LEDGER_PATH];
        int fd;

        if (!audit_tenant_ok(tenant))
                return err_set(err, -EINVAL, ERR_INVALID, "tenant '%.40s': lower-case letters, digits, '-' and '_'",
                               tenant);
        (void) snprintf(path, sizeof(path), "%.400s/%s", dir, tenant);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? unreadable(err, path, -errno) : fd;
}

static int by_number(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

/* The number of a segment's name; 0 if it is none. */
static uint64_t segment_number(const char *name) {
        char digits[24];
        size_t n = strspn(name, "0123456789");
        uint64_t v;

        if (n < DIGITS || n >= sizeof(digits) || !str_eq(name + n, ".log"))
                return 0;
        memcpy(digits, name, n);
        digits[n] = '\0';
        return str_to_u64(digits, UINT64_MAX / 2, &v) == 0 ? v : 0;
}

int chain_segments(int dir_fd, uint64_t **ret, struct err *err) {
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = copy < 0 ? NULL : fdopendir(copy);
        AUTO_FREE uint64_t *list = NULL;
        size_t n = 0, cap = 0;
        struct dirent *e;
        int r = 0;

        if (!d) {
                own_closep(&copy);
                return unreadable(err, "its directory", -errno);
        }
        while (r == 0 && (e = readdir(d))) {
                uint64_t v = segment_number(e->d_name);

                if (v == 0)
                        continue;
                if (n == cap) {
                        uint64_t *more =
                                n < CHAIN_SEGMENTS ? realloc(list, (cap = cap ? 2 * cap : 64) * sizeof(*list)) : NULL;

                        if (!more) {
                                r = err_set(err, -E2BIG, ERR_LIMIT, "audit log: more than %d files", CHAIN_SEGMENTS);
                                break;
                        }
                        list = more;
                }
                list[n++] = v;
        }
        (void) closedir(d);
        if (r < 0)
                return r;
        if (n > 1)
                qsort(list, n, sizeof(*list), by_number);
        *ret = TAKE_PTR(list);
        return (int) n;
}

size_t chain_trim(char note[AUDIT_HEAD_BYTES]) {
        size_t n = strnlen(note, AUDIT_HEAD_BYTES);

        while (n > 1 && note[n - 1] == '\n' && note[n - 2] == '\n')
                n--;
        n = n < AUDIT_HEAD_BYTES ? n : 0;
        note[n] = '\0';
        return n;
}

int chain_notes(int dir_fd, char notes[2][AUDIT_HEAD_BYTES], struct err *err) {
        static const char *const names[2] = { "head.0", "head.1" };

        for (int i = 0; i < 2; i++) {
                AUTO_FD int fd = openat(dir_fd, names[i], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
                char again[AUDIT_HEAD_BYTES];
                ssize_t n = 0;

                if (fd < 0 && errno != ENOENT)
                        return unreadable(err, names[i], -errno);
                /* Until two readings agree: a writer may be in the middle of it. */
                for (int k = 0; fd >= 0 && k < READINGS; k++) {
                        n = pread(fd, notes[i], AUDIT_HEAD_BYTES, 0);
                        if (n < 0)
                                return unreadable(err, names[i], -errno);
                        if (pread(fd, again, sizeof(again), 0) == n && memcmp(again, notes[i], (size_t) n) == 0)
                                break;
                }
                if (n < AUDIT_HEAD_BYTES)
                        notes[i][n] = '\0';
        }
        return 0;
}

int chain_lines(int dir_fd, uint64_t first, uint64_t until, int (*fn)(void *arg, const struct ledger_line *l),
                void *arg, struct err *err) {
        char name[CHAIN_FILE];
        AUTO_FD int fd = -1;
        AUTO_FREE char *chunk = malloc(CHAIN_CHUNK);
        size_t have = 0;
        uint64_t at = 0; /* of chunk[0] in the file */
        struct ledger_line l = { .seq = first, .file = name, .line = 1 };
        int r = 0;

        chain_file(name, first);
        fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || !chunk)
                return unreadable(err, name, fd < 0 ? -errno : -ENOMEM);
        for (;;) {
                size_t room = CHAIN_CHUNK - have, used = 0;
                ssize_t n;

                room = until - at - have < room ? (size_t) (until - at - have) : room;
                n = room ? pread(fd, chunk + have, room, (off_t) (at + have)) : 0;
                if (n < 0)
                        return unreadable(err, name, -errno);
                have += (size_t) n;
                for (char *end; r == 0 && (end = memchr(chunk + used, '\n', have - used));) {
                        l.text = chunk + used;
                        l.n = (size_t) (end - l.text);
                        l.offset = at + used;
                        r = fn(arg, &l);
                        used += l.n + 1;
                        l.line++;
                        l.seq++;
                }
                if (r != 0)
                        return r;
                if (n == 0 || (used == 0 && have == CHAIN_CHUNK)) { /* the end, or a line without one */
                        l.text = chunk;
                        l.n = have;
                        l.offset = at;
                        l.unfinished = true;
                        return have > used ? fn(arg, &l) : 0;
                }
                have -= used;
                at += used;
                memmove(chunk, chunk + used, have);
        }
}

int chain_leaves(int dir_fd, uint64_t last, uint8_t (**ret)[HASH_BYTES], struct err *err) {
        AUTO_FD int fd = openat(dir_fd, "leaves", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        size_t want = (size_t) last * HASH_BYTES, have = 0;
        AUTO_FREE char *all = NULL;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return unreadable(err, "leaves", -errno);
        if ((uint64_t) st.st_size / HASH_BYTES < last)
                return unreadable(err, "leaves", -ENODATA);
        all = malloc(want ? want : 1);
        if (!all)
                return unreadable(err, "leaves", -ENOMEM);
        while (have < want) {
                ssize_t k = pread(fd, all + have, want - have, (off_t) have);

                if (k <= 0)
                        return unreadable(err, "leaves", k < 0 ? -errno : -ENODATA);
                have += (size_t) k;
        }
        *ret = (void *) TAKE_PTR(all);
        return 0;
}

bool ledger_is(const char *dir) {
        char path[LEDGER_PATH];
        struct stat st;

        (void) snprintf(path, sizeof(path), "%.400s/keys", dir);
        return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int is_tenant(const struct dirent *e) {
        return e->d_type == DT_DIR && audit_tenant_ok(e->d_name) && !str_eq(e->d_name, "keys");
}

int ledger_tenants(const char *dir, int (*fn)(void *arg, const char *tenant), void *arg, struct err *err) {
        struct dirent **names = NULL;
        int n = scandir(dir, &names, is_tenant, alphasort), r = 0;

        if (n < 0)
                return unreadable(err, dir, -errno);
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = fn(arg, names[i]->d_name);
                free(names[i]);
        }
        free(names);
        return r;
}

int ledger_head(const char *dir, const char *tenant, char note[AUDIT_HEAD_BYTES], struct audit_head *ret,
                struct err *err) {
        AUTO_FD int dir_fd = chain_dir(dir, tenant, err);
        char notes[2][AUDIT_HEAD_BYTES];
        struct audit_head h;
        bool found = false;
        int r = dir_fd < 0 ? dir_fd : chain_notes(dir_fd, notes, err);

        if (r < 0)
                return r;
        for (int i = 0; i < 2; i++) {
                struct err why = { 0 };
                const char *end;

                if (chain_trim(notes[i]) == 0)
                        continue;
                end = strstr(notes[i], "\n\n");
                if (!end || audit_head_parse(notes[i], (size_t) (end - notes[i]) + 1, &h, &why) < 0)
                        continue;
                if (!found || h.tree.size > ret->tree.size) {
                        *ret = h;
                        memcpy(note, notes[i], AUDIT_HEAD_BYTES);
                }
                found = true;
        }
        return found ? 0 : err_set(err, -ENODATA, ERR_NOT_FOUND, "audit log of tenant %s has no readable head", tenant);
}

struct from {
        uint64_t seq;
        int (*fn)(void *arg, const struct ledger_line *l);
        void *arg;
};

static int from_here(void *arg, const struct ledger_line *l) {
        struct from *f = arg;

        return l->seq < f->seq ? 0 : f->fn(f->arg, l);
}

int ledger_each(const char *dir, const char *tenant, uint64_t from, int (*fn)(void *arg, const struct ledger_line *l),
                void *arg, struct err *err) {
        AUTO_FD int dir_fd = chain_dir(dir, tenant, err);
        AUTO_FREE uint64_t *first = NULL;
        char note[AUDIT_HEAD_BYTES];
        struct from f = { .seq = from, .fn = fn, .arg = arg };
        struct audit_head h;
        int n, r;

        if (dir_fd < 0)
                return dir_fd;
        r = ledger_head(dir, tenant, note, &h, err);
        n = r < 0 ? r : chain_segments(dir_fd, &first, err);
        for (int i = 0; r == 0 && i < n && first[i] <= h.segment; i++) {
                if (i + 1 < n && first[i + 1] <= from && first[i + 1] <= h.segment)
                        continue;
                if (first[i] == h.segment && h.offset == 0)
                        continue;
                r = chain_lines(dir_fd, first[i], first[i] == h.segment ? h.offset : UINT64_MAX, from_here, &f, err);
        }
        return n < 0 ? n : r;
}

int ledger_statement_read(const char *dir, const char *tenant, const char *sandbox, const char *kind, char **ret,
                          size_t *ret_n, struct err *err) {
        AUTO_FD int dir_fd = chain_dir(dir, tenant, err);
        int r = dir_fd < 0 ? dir_fd : pack_read(dir_fd, sandbox, kind, ret, ret_n, err);

        return dir_fd < 0 || r == 0 ? r : unreadable(err, kind, r);
}
