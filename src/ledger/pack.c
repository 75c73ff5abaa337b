/*
 * pack.c - documents beside a chain, many to a file.
 *
 * statements/N.log holds documents, one behind the other, each with a newline behind it. statements/N.idx has a line of
 * fixed length for each: sandbox, kind, where it begins, how long it is. The document is written first: one without a
 * line was never kept, and a file with such a tail is not written any more; the next one is begun. So a crash costs at
 * most the last document, nothing is ever overwritten, and reading needs no lock. Of two documents with one name the
 * first counts. N is the day and a number, so that a file has the documents of one day, and goes with them.
 */
#include "ledger/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"

enum { LINES = 1024, KIND_AT = ID_LEN + 1, PLACE_AT = KIND_AT + PACK_KIND, N_AT = PLACE_AT + 13 };

enum { DAY_MS = 86400000, PER_DAY = 100000 };

static uint64_t today(void) {
        return clock_real_ms() / DAY_MS;
}

static void names(uint64_t number, char log[CHAIN_FILE], char idx[CHAIN_FILE]) {
        chain_file(log, number);
        (void) snprintf(idx, CHAIN_FILE, "%.*s.idx", (int) strcspn(log, "."), log);
}

/* --- one line --- */

void pack_line(const struct pack_entry *e, char dst[PACK_LINE + 1]) {
        (void) snprintf(dst, PACK_LINE + 1, "%-*s %-*s%012llu %08llu\n", ID_LEN, e->sandbox, PACK_KIND, e->kind,
                        (unsigned long long) e->at, (unsigned long long) e->n);
}

int pack_parse(const char *line, struct pack_entry *ret) {
        char again[PACK_LINE + 1], text[PACK_LINE + 1];

        memcpy(text, line, PACK_LINE);
        text[PACK_LINE] = '\0';
        if (strlen(text) != PACK_LINE)
                return -EBADMSG;
        (void) snprintf(ret->sandbox, sizeof(ret->sandbox), "%.*s", ID_LEN, text);
        (void) snprintf(ret->kind, sizeof(ret->kind), "%.*s", (int) strcspn(text + KIND_AT, " "), text + KIND_AT);
        text[PLACE_AT + 12] = text[PACK_LINE - 1] = '\0';
        if (str_to_u64(text + PLACE_AT, UINT64_MAX, &ret->at) < 0 ||
            str_to_u64(text + N_AT, LEDGER_STATEMENT_MAX, &ret->n) < 0)
                return -EBADMSG;
        pack_line(ret, again);
        return memcmp(again, line, PACK_LINE) == 0 ? 0 : -EBADMSG;
}

/* --- writing --- */

void pack_close(struct pack *p) {
        own_closep(&p->log_fd);
        own_closep(&p->idx_fd);
        own_closep(&p->dir_fd);
        *p = PACK_NONE;
}

int pack_sync(struct pack *p) {
        int r = 0;

        if (p->dirty && (fdatasync(p->log_fd) < 0 || fdatasync(p->idx_fd) < 0 || (p->made && fsync(p->dir_fd) < 0)))
                r = -errno;
        p->dirty = p->made = false;
        return r;
}

static int open_both(struct pack *p, const struct ledger_settings *s, uint64_t number, int flags) {
        char log[CHAIN_FILE], idx[CHAIN_FILE];

        names(number, log, idx);
        p->log_fd = chain_file_open(s, p->dir_fd, log, flags);
        p->idx_fd = p->log_fd < 0 ? -1 : chain_file_open(s, p->dir_fd, idx, flags);
        return p->log_fd < 0 ? p->log_fd : p->idx_fd < 0 ? p->idx_fd : 0;
}

/* Is all of it accounted for, and is there room? */
static bool goes_on(struct pack *p, const struct ledger_settings *s) {
        struct stat log, idx;
        struct pack_entry last = { 0 };
        char line[PACK_LINE];

        if (fstat(p->log_fd, &log) < 0 || fstat(p->idx_fd, &idx) < 0 || idx.st_size % PACK_LINE != 0 ||
            (uint64_t) log.st_size >= chain_file_max(s))
                return false;
        if (idx.st_size > 0 &&
            (pread(p->idx_fd, line, sizeof(line), idx.st_size - PACK_LINE) != PACK_LINE || pack_parse(line, &last) < 0))
                return false;
        p->end = idx.st_size > 0 ? last.at + last.n + 1 : 0;
        p->idx_end = (uint64_t) idx.st_size;
        return p->end == (uint64_t) log.st_size;
}

/* The newest file, or the next one if that is of another day, full, or has a tail. */
static int begin(struct pack *p, const struct ledger_settings *s, int chain_fd, struct err *err) {
        AUTO_FREE uint64_t *all = NULL;
        uint64_t newest, first = today() * PER_DAY;
        int n, r = pack_sync(p);

        pack_close(p);
        if (r == 0 && mkdirat(chain_fd, "statements", 0700) < 0 && errno != EEXIST)
                r = -errno;
        p->dir_fd = openat(chain_fd, "statements", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (r == 0)
                r = p->dir_fd < 0 ? -errno : chain_shared(s, p->dir_fd, 0750);
        n = r < 0 ? r : chain_segments(p->dir_fd, &all, err);
        newest = n > 0 && all ? all[n - 1] : 0;
        p->day = today();
        if (newest >= first && open_both(p, s, newest, 0) == 0 && goes_on(p, s))
                return 0;
        own_closep(&p->log_fd);
        own_closep(&p->idx_fd);
        if (n >= 0)
                r = open_both(p, s, (newest > first ? newest : first) + 1, O_CREAT | O_EXCL);
        p->end = p->idx_end = 0;
        p->made = true;
        return n < 0 ? n : r;
}

/* Somebody else may have written, or dropped it. */
static bool is_as_left(const struct pack *p, const struct ledger_settings *s) {
        struct stat st;

        return p->log_fd >= 0 && fstat(p->log_fd, &st) == 0 && st.st_nlink > 0 && (uint64_t) st.st_size == p->end &&
               p->end < chain_file_max(s) && p->day == today();
}

static int put(struct pack *p, const struct pack_entry *e, const char *text) {
        char line[PACK_LINE + 1];
        int r = chain_write(p->log_fd, text, e->n, p->end);

        if (r == 0)
                r = chain_write(p->log_fd, "\n", 1, p->end + e->n);
        pack_line(e, line);
        if (r == 0)
                r = chain_write(p->idx_fd, line, PACK_LINE, p->idx_end);
        if (r < 0)
                return r;
        p->end += e->n + 1;
        p->idx_end += PACK_LINE;
        p->dirty = true;
        return 0;
}

int pack_add(struct chain *c, const struct ledger_settings *s, const char *sandbox, const char *kind, const char *text,
             size_t n, struct err *err) {
        struct pack_entry e = { .n = n };
        bool lock = !c->locked;
        int r = lock && flock(c->lock_fd, LOCK_EX) < 0 ? -errno : 0;

        (void) str_copy(e.sandbox, sizeof(e.sandbox), sandbox);
        (void) str_copy(e.kind, sizeof(e.kind), kind);
        if (r == 0 && !is_as_left(&c->pack, s))
                r = begin(&c->pack, s, c->dir_fd, err);
        e.at = c->pack.end;
        if (r == 0)
                r = put(&c->pack, &e, text);
        if (r < 0)
                pack_close(&c->pack); /* whoever is next looks at what is there */
        if (lock)
                (void) flock(c->lock_fd, LOCK_UN);
        return r;
}

/* --- reading --- */

/* Looks for it among the lines of one file. 1: found. */
static int find(int dir_fd, uint64_t number, const char *sandbox, const char *kind, struct pack_entry *ret) {
        char log[CHAIN_FILE], idx[CHAIN_FILE];
        AUTO_FREE char *lines = malloc((size_t) LINES * PACK_LINE);
        AUTO_FD int fd = -1;
        ssize_t n = 0;

        names(number, log, idx);
        fd = openat(dir_fd, idx, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || !lines)
                return fd < 0 ? -errno : -ENOMEM;
        for (off_t at = 0; (n = pread(fd, lines, (size_t) LINES * PACK_LINE, at)) >= PACK_LINE;
             at += n / PACK_LINE * PACK_LINE)
                for (ssize_t i = 0; i + PACK_LINE <= n; i += PACK_LINE)
                        if (pack_parse(lines + i, ret) == 0 && str_eq(ret->sandbox, sandbox) && str_eq(ret->kind, kind))
                                return 1;
        return n < 0 ? -errno : 0;
}

int pack_read(int chain_fd, const char *sandbox, const char *kind, char **ret, size_t *ret_n, struct err *err) {
        AUTO_FD int dir_fd = openat(chain_fd, "statements", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), fd = -1;
        AUTO_FREE uint64_t *all = NULL;
        AUTO_FREE char *text = NULL;
        char log[CHAIN_FILE], idx[CHAIN_FILE];
        struct pack_entry e = { 0 };
        int i, found = 0, n = dir_fd < 0 ? -errno : chain_segments(dir_fd, &all, err);

        for (i = 0; all && i < n; i++) {
                found = find(dir_fd, all[i], sandbox, kind, &e);
                if (found == 1 || (found < 0 && found != -ENOENT))
                        break;
        }
        if (n < 0 || found < 0)
                return n < 0 ? n : found;
        if (!all || i == n)
                return -ENOENT;
        names(all[i], log, idx);
        fd = openat(dir_fd, log, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        text = malloc(e.n + 1);
        if (fd < 0 || !text || pread(fd, text, e.n, (off_t) e.at) != (ssize_t) e.n)
                return fd < 0 ? -errno : !text ? -ENOMEM : -EIO;
        text[e.n] = '\0';
        *ret = TAKE_PTR(text);
        *ret_n = e.n;
        return 0;
}

/* --- dropping --- */

void pack_drop(int chain_fd, uint64_t before_ms) {
        AUTO_FD int dir_fd = openat(chain_fd, "statements", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        AUTO_FREE uint64_t *all = NULL;
        struct err err = { 0 };
        int n = dir_fd < 0 ? 0 : chain_segments(dir_fd, &all, &err);

        for (int i = 0; all && i < n; i++) {
                char log[CHAIN_FILE], idx[CHAIN_FILE];
                struct stat st;

                names(all[i], log, idx);
                if (fstatat(dir_fd, log, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    (uint64_t) st.st_mtim.tv_sec * 1000 >= before_ms)
                        continue;
                (void) unlinkat(dir_fd, idx, 0);
                (void) unlinkat(dir_fd, log, 0);
        }
}
