/*
 * chain.c - writing one chain.
 *
 * Files of a tenant: segments named by the number of their first record, head.0 and head.1 (the newest heads, written
 * in turn and each in place, so that one is always whole), lock, leaves (hashes of dropped records), statements/
 * (pack.c).
 *
 * Invariant: a head never covers a record that is not durable, and what no head covers was never acknowledged. So
 * recovery is one rule: cut what is behind the newest head, and record that. A segment shorter than its head is damage,
 * and then nothing is written any more.
 */
#include "ledger/chain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "ledger/pack.h"

static const char *const head_names[2] = { "head.0", "head.1" };

static int failed(struct err *err, const struct chain *c, int code, const char *what) {
        return err_set(err, code, code == -ENOSPC || code == -EDQUOT ? ERR_LIMIT : ERR_INTERNAL,
                       "audit log of tenant %s: %s: %s", c->tenant, what, strerror(-code));
}

static int damaged(struct err *err, const struct chain *c, const char *what) {
        return err_set(err, -EUCLEAN, ERR_INTERNAL,
                       "audit log of tenant %s is damaged: %s; see 'gabion audit verify', then put it aside", c->tenant,
                       what);
}

int chain_shared(const struct ledger_settings *s, int fd, mode_t mode) {
        if (s->readers != (gid_t) -1 && fchown(fd, (uid_t) -1, s->readers) < 0)
                return -errno;
        return fchmod(fd, s->readers != (gid_t) -1 ? mode : mode & 0700) < 0 ? -errno : 0;
}

int chain_file_open(const struct ledger_settings *s, int dir_fd, const char *name, int flags) {
        AUTO_FD int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
        int r = fd < 0 ? -errno : 0;

        if (r == 0 && (flags & O_CREAT))
                r = chain_shared(s, fd, 0640);
        return r < 0 ? r : TAKE_FD(fd);
}

struct chain *chain_free(struct chain *c) {
        if (!c)
                return NULL;
        own_closep(&c->dir_fd);
        own_closep(&c->lock_fd);
        own_closep(&c->segment_fd);
        own_closep(&c->head_fds[0]);
        own_closep(&c->head_fds[1]);
        pack_close(&c->pack);
        buf_done(&c->batch);
        free(c);
        return NULL;
}

static void chain_freep(struct chain **c) {
        *c = chain_free(*c);
}

int chain_open(const struct ledger_settings *s, const char *tenant, struct chain **ret, struct err *err) {
        CLEANUP(chain_freep) struct chain *c = calloc(1, sizeof(*c));
        char path[LEDGER_PATH];

        if (!c)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "audit log: out of memory");
        c->dir_fd = c->lock_fd = c->segment_fd = c->head_fds[0] = c->head_fds[1] = -1;
        c->batch = BUF_INIT(LEDGER_BATCH_BYTES);
        c->pack = PACK_NONE;
        (void) str_copy(c->tenant, sizeof(c->tenant), tenant);
        (void) snprintf(path, sizeof(path), "%.400s/%s", s->dir, tenant);
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return failed(err, c, -errno, "its directory");
        c->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (c->dir_fd < 0)
                return failed(err, c, -errno, "its directory");
        c->lock_fd = openat(c->dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (c->lock_fd < 0 || chain_shared(s, c->dir_fd, 0750) < 0)
                return failed(err, c, -errno, "its lock"); /* readers cannot open it, so they cannot hold it */
        *ret = TAKE_PTR(c);
        return 0;
}

/* What a head's file holds: the signed note, and newlines up to its size. */
static int head_page(const struct audit_head *h, const struct sign_key *key, char page[AUDIT_HEAD_BYTES]) {
        struct buf b = BUF_INIT(AUDIT_HEAD_BYTES);
        int r = 0;

        audit_head_text(h, &b);
        sign_note(key, &b);
        memset(page, '\n', AUDIT_HEAD_BYTES);
        if (b.bad || b.len >= AUDIT_HEAD_BYTES)
                r = -EOVERFLOW;
        else
                memcpy(page, b.p, b.len);
        buf_done(&b);
        return r;
}

/* Writes a head into a slot and makes it durable. */
static int head_write(struct chain *c, const char page[AUDIT_HEAD_BYTES], int fd, int slot) {
        int r = chain_write(fd, page, AUDIT_HEAD_BYTES, 0);

        if (r == 0 && fdatasync(fd) < 0)
                r = -errno;
        if (r == 0)
                memcpy(c->note[slot], page, AUDIT_HEAD_BYTES);
        return r;
}

/* A chain begins with a signed head of nothing, complete under its name or absent. */
static int chain_found(struct chain *c, const struct ledger_settings *s, const struct sign_key *key, struct err *err) {
        AUTO_FREE uint64_t *segments = NULL;
        AUTO_FD int fd = -1;
        char page[AUDIT_HEAD_BYTES];
        int r = chain_segments(c->dir_fd, &segments, err);

        if (r < 0)
                return r;
        if (r > 0)
                return damaged(err, c, "records without a head");
        memset(&c->head, 0, sizeof(c->head));
        (void) str_copy(c->head.tenant, sizeof(c->head.tenant), c->tenant);
        c->head.segment = 1;
        c->head.time_ms = clock_real_ms();
        fd = chain_file_open(s, c->dir_fd, "head.new", O_CREAT | O_TRUNC);
        r = fd < 0 ? fd : head_page(&c->head, key, page);
        if (r == 0)
                r = head_write(c, page, fd, 0);
        if (r == 0 && (renameat(c->dir_fd, "head.new", c->dir_fd, head_names[0]) < 0 || fsync(c->dir_fd) < 0))
                r = -errno;
        return r < 0 ? failed(err, c, r, "first head") : 0;
}

/* The newest head that the key has signed. 1 when there is none at all; -ENOKEY when another key signed. */
static int heads_read(struct chain *c, const uint8_t pub[SIGN_PUBLIC], struct err *err) {
        bool found = false, other_key = false, any = false;

        for (int i = 0; i < 2; i++) {
                char note[AUDIT_HEAD_BYTES];
                struct audit_head h;
                struct err why = { 0 };
                size_t n, text;

                memcpy(note, c->note[i], sizeof(note));
                n = chain_trim(note);
                if (n == 0)
                        continue;
                any = true;
                if (sign_note_open(note, n, pub, &text, &why) < 0 || audit_head_parse(note, text, &h, &why) < 0) {
                        other_key |= why.code == -ENOKEY;
                        continue;
                }
                if (!str_eq(h.tenant, c->tenant))
                        return damaged(err, c, "a head of another tenant");
                if (!found || h.tree.size > c->head.tree.size) {
                        c->head = h;
                        c->slot = i;
                }
                found = true;
        }
        if (found)
                return 0;
        if (other_key)
                return -ENOKEY;
        return any ? damaged(err, c, "no head has a valid signature") : 1;
}

/* Notes what stands in a file behind `from`, for the record of the cut. It goes when that record is written. */
static int cut(struct chain *c, int fd, uint64_t from, uint64_t size) {
        char hash[HASH_TEXT];
        size_t n = size - from < LEDGER_BATCH_BYTES ? (size_t) (size - from) : LEDGER_BATCH_BYTES;
        AUTO_FREE char *tail = malloc(n);

        if (!tail)
                return -ENOMEM;
        if (pread(fd, tail, n, (off_t) from) != (ssize_t) n)
                return -EIO;
        hash_text(hash, tail, n);
        (void) snprintf(c->cut, sizeof(c->cut), "%" PRIu64 " bytes, %s", size - from, hash);
        c->cut_end = size;
        return 0;
}

/* When the first record of a segment was logged; now, if it does not say. */
static uint64_t first_time(int fd) {
        static const char mark[] = "\"logged_time\":";
        char text[2048] = "";
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
        const char *at = n > 0 ? strstr(text, mark) : NULL;
        char number[24];
        uint64_t v;

        if (!at)
                return clock_real_ms();
        (void) snprintf(number, sizeof(number), "%.*s", (int) strspn(at + sizeof(mark) - 1, "0123456789"),
                        at + sizeof(mark) - 1);
        return str_to_u64(number, UINT64_MAX, &v) == 0 ? v : clock_real_ms();
}

/* A crash between making the next segment and its first head leaves a file that no head covers. */
static int next_look(struct chain *c) {
        char name[CHAIN_FILE];
        struct stat st;

        c->begun = false;
        if (c->head.offset == 0)
                return 0;
        chain_file(name, c->head.tree.size + 1);
        if (fstatat(c->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        c->begun = st.st_size > 0;
        return c->begun || unlinkat(c->dir_fd, name, 0) == 0 ? 0 : -errno;
}

/* Opens the segment in which the head ends, and cuts what it does not cover. */
static int segment_adopt(struct chain *c, const struct ledger_settings *s, struct err *err) {
        char name[CHAIN_FILE];
        struct stat st;
        int r;

        own_closep(&c->segment_fd);
        chain_file(name, c->head.segment);
        c->segment_fd = chain_file_open(s, c->dir_fd, name, c->head.offset == 0 ? O_CREAT : 0);
        c->made = c->head.offset == 0;
        if (c->segment_fd < 0 || fstat(c->segment_fd, &st) < 0)
                return c->segment_fd == -ENOENT ? damaged(err, c, "its newest file is missing")
                                                : failed(err, c, c->segment_fd < 0 ? c->segment_fd : -errno, name);
        if ((uint64_t) st.st_size < c->head.offset)
                return damaged(err, c, "its newest file is shorter than the head says");
        c->segment_ms = c->head.offset > 0 ? first_time(c->segment_fd) : clock_real_ms();
        r = (uint64_t) st.st_size > c->head.offset ? cut(c, c->segment_fd, c->head.offset, (uint64_t) st.st_size)
                                                   : next_look(c);
        return r < 0 ? failed(err, c, r, "cutting what was unfinished") : 0;
}

/* The slots as they are now; 1 when they are as we left them. */
static int notes_refresh(struct chain *c, const struct ledger_settings *s, struct err *err) {
        char now[AUDIT_HEAD_BYTES];
        bool same = c->known;

        for (int i = 0; i < 2; i++) {
                ssize_t n = 0;

                if (c->head_fds[i] < 0)
                        c->head_fds[i] = chain_file_open(s, c->dir_fd, head_names[i], 0);
                if (c->head_fds[i] < 0 && c->head_fds[i] != -ENOENT)
                        return failed(err, c, c->head_fds[i], head_names[i]);
                if (c->head_fds[i] >= 0)
                        n = pread(c->head_fds[i], now, sizeof(now), 0);
                if (n != 0 && n != (ssize_t) sizeof(now))
                        n = 0; /* torn while it was made: the other one counts */
                same = same && n > 0 && memcmp(now, c->note[i], sizeof(now)) == 0;
                memcpy(c->note[i], now, (size_t) n);
                if (n == 0)
                        c->note[i][0] = '\0';
        }
        return same;
}

/* The same with the keys before: a change of keys was cut short between the new key and its first head. */
static int heads_read_old(struct chain *c, const char *keys, struct err *err) {
        DIR *d = opendir(keys);
        struct dirent *e;
        int r = -ENOKEY;

        while (d && r == -ENOKEY && (e = readdir(d))) {
                char path[LEDGER_PATH + 64];
                uint8_t pub[SIGN_PUBLIC];
                struct err why = { 0 };

                if (!str_has_prefix(e->d_name, "retired-"))
                        continue;
                (void) snprintf(path, sizeof(path), "%s/%.40s", keys, e->d_name);
                if (sign_public_read(path, pub, &why) == 0)
                        r = heads_read(c, pub, err);
        }
        if (d)
                (void) closedir(d);
        c->old_key = r == 0;
        return r == -ENOKEY ? damaged(err, c, "its heads are signed by a key that is not here") : r;
}

/* The newest head, whoever of our keys signed it. */
static int head_find(struct chain *c, const struct ledger_settings *s, struct sign_key **key, struct err *err) {
        struct sign_key *fresh = NULL;
        uint8_t pub[SIGN_PUBLIC];
        char path[LEDGER_PATH];
        int r;

        c->old_key = false;
        sign_key_public(*key, pub);
        r = heads_read(c, pub, err);
        if (r != -ENOKEY)
                return r;
        (void) snprintf(path, sizeof(path), "%.400s/keys", s->dir);
        if (sign_key_open(path, &fresh, err) < 0) /* changed by another writer */
                return err->code;
        (void) sign_key_free(*key);
        *key = fresh;
        sign_key_public(*key, pub);
        r = heads_read(c, pub, err);
        return r == -ENOKEY ? heads_read_old(c, path, err) : r;
}

/* Reads the present state from the files. */
static int state_learn(struct chain *c, const struct ledger_settings *s, struct sign_key **key, struct err *err) {
        int r = head_find(c, s, key, err);

        if (r == 1)
                r = chain_found(c, s, *key, err);
        for (int i = 0; r == 0 && i < 2; i++)
                if (c->head_fds[i] < 0) {
                        c->head_fds[i] = chain_file_open(s, c->dir_fd, head_names[i], O_CREAT);
                        r = c->head_fds[i] < 0 ? failed(err, c, c->head_fds[i], head_names[i]) : 0;
                }
        return r < 0 ? r : segment_adopt(c, s, err);
}

int chain_begin(struct chain *c, const struct ledger_settings *s, struct sign_key **key, struct err *err) {
        int r;

        if (c->locked)
                return 0;
        if (flock(c->lock_fd, LOCK_EX) < 0)
                return failed(err, c, -errno, "lock");
        c->locked = true;
        r = notes_refresh(c, s, err);
        if (r == 0)
                r = state_learn(c, s, key, err);
        if (r < 0) {
                chain_undo(c);
                return r;
        }
        c->known = true;
        c->ahead = c->head;
        return 0;
}

uint64_t chain_file_max(const struct ledger_settings *s) {
        return s->segment_bytes ? s->segment_bytes : 64u << 20;
}

static int segment_rotate(struct chain *c, const struct ledger_settings *s, struct err *err) {
        uint64_t bytes = chain_file_max(s);
        uint64_t age = s->segment_age_ms ? s->segment_age_ms : 86400000;
        char name[CHAIN_FILE];
        struct stat st;
        int fd, r = 0;

        if (c->batch.len > 0 || c->head.offset == 0 ||
            (!c->begun && c->head.offset < bytes && clock_real_ms() - c->segment_ms < age))
                return 0;
        chain_file(name, c->head.tree.size + 1);
        fd = chain_file_open(s, c->dir_fd, name, O_CREAT);
        if (fd < 0 || fstat(fd, &st) < 0)
                return failed(err, c, fd < 0 ? fd : -errno, name);
        own_closep(&c->segment_fd);
        c->segment_fd = fd;
        if (st.st_size > 0)
                r = cut(c, fd, 0, (uint64_t) st.st_size);
        if (r < 0)
                return failed(err, c, r, name);
        c->ahead.segment = c->head.tree.size + 1;
        c->ahead.offset = 0;
        c->segment_ms = clock_real_ms();
        c->made = true;
        c->begun = false;
        return 0;
}

static int add_one(struct chain *c, const struct ledger_settings *s, const struct audit_event *ev, struct err *err) {
        struct audit_place at = { .seq = c->ahead.tree.size + 1, .logged_ms = clock_real_ms(), .node = s->node };
        uint8_t hash[HASH_BYTES], leaf[HASH_BYTES];
        size_t before = c->batch.len;
        int r;

        memcpy(at.prev, c->ahead.last, HASH_BYTES);
        r = audit_record_make(ev, &at, &c->batch, hash, err);
        if (r < 0) {
                c->batch.len = before;
                return r;
        }
        buf_add(&c->batch, "\n", 1);
        merkle_leaf(leaf, hash, HASH_BYTES);
        merkle_add(&c->ahead.tree, leaf);
        memcpy(c->ahead.last, hash, HASH_BYTES);
        c->ahead.offset += c->batch.len - before;
        return 0;
}

int chain_settle(struct chain *c, const struct ledger_settings *s, struct err *err) {
        struct audit_event ev;
        int r = c->begun ? segment_rotate(c, s, err) : 0;

        if (r < 0 || !c->cut[0] || c->batch.len > 0)
                return r;
        audit_event_init(&ev, AUDIT_LOG_CUT, c->tenant, "");
        audit_text(&ev, "cut", c->cut);
        return add_one(c, s, &ev, err);
}

int chain_add(struct chain *c, const struct ledger_settings *s, const struct audit_event *ev, struct err *err) {
        struct audit_event first;
        int r = segment_rotate(c, s, err);

        if (r == 0)
                r = chain_settle(c, s, err);
        if (r == 0 && c->ahead.tree.size == 0 && ev->kind != AUDIT_LOG_STARTED) {
                audit_event_init(&first, AUDIT_LOG_STARTED, c->tenant, "");
                r = add_one(c, s, &first, err);
        }
        return r < 0 ? r : add_one(c, s, ev, err);
}

void chain_undo(struct chain *c) {
        c->batch.len = 0;
        c->batch.bad = false;
        c->ahead = c->head;
        c->known = false;
        if (c->locked)
                (void) flock(c->lock_fd, LOCK_UN);
        c->locked = false;
}

int chain_write(int fd, const char *p, size_t n, uint64_t at) {
        while (n > 0) {
                ssize_t k = pwrite(fd, p, n, (off_t) at);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        return k < 0 ? -errno : -EIO;
                p += k;
                n -= (size_t) k;
                at += (uint64_t) k;
        }
        return 0;
}

/* Batch, then head; both durable, in that order. The head is signed while the disk already writes the batch. */
static int batch_write(struct chain *c, const struct sign_key *key, uint64_t start, int slot) {
        char page[AUDIT_HEAD_BYTES];
        int r = chain_write(c->segment_fd, c->batch.p, c->batch.len, start);

        if (r == 0 && c->cut[0] && c->cut_end > c->ahead.offset)
                r = ftruncate(c->segment_fd, (off_t) c->ahead.offset) < 0 ? -errno : 0;
        if (r == 0) /* only a beginning: fdatasync() says whether it went well */
                (void) sync_file_range(c->segment_fd, (off_t) start, (off_t) c->batch.len, SYNC_FILE_RANGE_WRITE);
        c->ahead.time_ms = clock_real_ms();
        if (r == 0)
                r = head_page(&c->ahead, key, page);
        if (r == 0 && (fdatasync(c->segment_fd) < 0 || (c->made && fsync(c->dir_fd) < 0)))
                r = -errno;
        if (r == 0)
                r = head_write(c, page, c->head_fds[slot], slot);
        if (r == 0 && c->old_key) /* the new key signs both, so that it alone is enough to verify */
                r = head_write(c, page, c->head_fds[1 - slot], 1 - slot);
        return r;
}

int chain_commit(struct chain *c, const struct sign_key *key, struct err *err) {
        uint64_t start = c->ahead.offset - c->batch.len;
        bool any = c->batch.len > 0 || c->old_key;
        int other = 1 - c->slot, r = any ? batch_write(c, key, start, other) : 0;

        if (r < 0) {
                (void) ftruncate(c->segment_fd, (off_t) start);
                chain_undo(c);
                return failed(err, c, r, "it cannot be written");
        }
        if (any) {
                c->slot = other;
                c->head = c->ahead;
                c->made = c->old_key = false;
                if (c->batch.len > 0)
                        c->cut[0] = '\0';
        }
        c->batch.len = 0;
        (void) flock(c->lock_fd, LOCK_UN);
        c->locked = false;
        return 0;
}
