/*
 * retain.c - dropping old files.
 *
 * In this order, so that a crash at any point leaves a log that verifies: the hashes of what goes are written to
 * `leaves`; a record says what is dropped, and is durable; only then are the files removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "ledger/chain.h"
#include "ledger/pack.h"

struct gather {
        uint8_t prev[HASH_BYTES];
        int fd; /* leaves */
        struct err *err;
};

static int gather_one(void *arg, const struct ledger_line *l) {
        struct gather *g = arg;
        uint8_t hash[HASH_BYTES];
        int r = audit_record_check(l->text, l->n, l->seq, g->prev, hash, g->err);

        if (r < 0)
                return err_wrap(g->err, "audit log: %s line %" PRIu64 " is bad, nothing is dropped", l->file, l->line);
        memcpy(g->prev, hash, HASH_BYTES);
        if (pwrite(g->fd, hash, HASH_BYTES, (off_t) ((l->seq - 1) * HASH_BYTES)) != HASH_BYTES)
                return err_set(g->err, -errno, ERR_INTERNAL, "audit log: leaves: %s", strerror(errno));
        return 0;
}

/* How many of the segments are closed and were last written before `before_ms`. */
static size_t count_old(const struct chain *c, const uint64_t *first, size_t n, uint64_t before_ms) {
        size_t k = 0;

        for (; k + 1 < n && first[k] < c->head.segment; k++) {
                char name[CHAIN_FILE];
                struct stat st;

                chain_file(name, first[k]);
                if (fstatat(c->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    (uint64_t) st.st_mtim.tv_sec * 1000 >= before_ms)
                        break;
        }
        return k;
}

static int leaves_keep(struct ledger *l, struct chain *c, const uint64_t *first, size_t k, struct err *err) {
        AUTO_FD int fd = openat(c->dir_fd, "leaves", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        struct gather g = { .fd = fd, .err = err };
        int r = 0;

        if (fd < 0 ||
            (l->s.readers != (gid_t) -1 && (fchown(fd, (uid_t) -1, l->s.readers) < 0 || fchmod(fd, 0640) < 0)))
                return err_set(err, -errno, ERR_INTERNAL, "audit log: leaves: %s", strerror(errno));
        if (first[0] > 1 && pread(fd, g.prev, HASH_BYTES, (off_t) ((first[0] - 2) * HASH_BYTES)) != HASH_BYTES)
                return err_set(err, -ENODATA, ERR_INTERNAL, "audit log: leaves: earlier hashes are missing");
        for (size_t i = 0; r == 0 && i < k; i++)
                r = chain_lines(c->dir_fd, first[i], UINT64_MAX, gather_one, &g, err);
        if (r == 0 && fsync(fd) < 0)
                r = err_set(err, -errno, ERR_INTERNAL, "audit log: leaves: %s", strerror(errno));
        return r;
}

static int drop(struct ledger *l, struct chain *c, const uint64_t *first, size_t k, uint64_t keep_ms, struct err *err) {
        struct audit_event ev;
        char name[CHAIN_FILE];
        uint64_t seq;
        int r = leaves_keep(l, c, first, k, err);

        if (r < 0)
                return r;
        audit_event_init(&ev, AUDIT_LOG_DROPPED, c->tenant, "");
        audit_number(&ev, "first", (int64_t) first[0]);
        audit_number(&ev, "last", (int64_t) first[k] - 1);
        audit_number(&ev, "keep_ms", (int64_t) keep_ms);
        (void) str_copy(ev.rule, sizeof(ev.rule), "retention");
        r = ledger_append(l, &ev, &seq, err);
        if (r == 0)
                r = ledger_commit(l, err);
        for (size_t i = 0; r == 0 && i < k; i++) {
                chain_file(name, first[i]);
                if (unlinkat(c->dir_fd, name, 0) < 0 && errno != ENOENT)
                        r = err_set(err, -errno, ERR_INTERNAL, "audit log: %s: %s", name, strerror(errno));
        }
        if (r == 0 && fsync(c->dir_fd) < 0)
                r = err_set(err, -errno, ERR_INTERNAL, "audit log: %s", strerror(errno));
        return r;
}

int ledger_retain(struct ledger *l, const char *tenant, uint64_t keep_ms, struct err *err) {
        AUTO_FREE uint64_t *first = NULL;
        uint64_t now = clock_real_ms(), before_ms = now > keep_ms ? now - keep_ms : 0;
        struct chain *c;
        size_t k;
        int n, r = ledger_chain(l, tenant, &c, err);

        if (r == 0)
                r = chain_begin(c, &l->s, &l->key, err);
        if (r < 0)
                return r;
        n = chain_segments(c->dir_fd, &first, err);
        k = n > 0 ? count_old(c, first, (size_t) n, before_ms) : 0;
        r = n < 0 ? n : 0;
        if (r == 0 && k > 0)
                r = drop(l, c, first, k, keep_ms, err);
        if (r == 0)
                r = ledger_commit(l, err);
        else
                ledger_undo(l);
        if (r == 0)
                pack_drop(c->dir_fd,
                          before_ms); /* by their own age: their hashes stay in the chain, or in the leaves */
        return r < 0 ? r : (int) k;
}
