/*
 * verify.c - is this log as it was written? From the files and a public key alone.
 *
 * One walk over all records: each has its own hash right, its number, and the hash of the one before; the tree over
 * them has the root that each head signs at its size; nothing is behind the newest head; what is not there any more was
 * dropped by a record that says so, and its hashes still fit the tree. The first thing that is wrong is named.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "ledger/chain.h"

enum { HEADS = 3, TRIES = 40, TRY_MS = 50 }; /* two slots, and one that was saved elsewhere */

struct signed_head {
        const char *name;
        char note[AUDIT_HEAD_BYTES];
        struct audit_head h;
        bool present;
        /* the keys that may have signed it, known when the walk reaches its size */
        bool reached, unsure;
        size_t key, older_key;
        bool older_ok;
};

struct walk {
        struct ledger_verdict *v;
        struct ledger_trust *trust;
        struct merkle tree;
        uint8_t prev[HASH_BYTES];
        size_t cap; /* of v->hashes */
        bool want_hashes;
        struct signed_head heads[HEADS];
        uint64_t dropped_to; /* by a record */
        size_t key, older_key;
        bool older_ok, unsure; /* unsure: which of the given keys counts is not known before a change of keys */
        struct err *err;
};

enum { BAD = 1 }; /* the walk has its verdict */

static int bad(struct walk *w, const char *file, uint64_t line, uint64_t seq, const char *fmt, ...)
        __attribute__((format(printf, 5, 6)));

static int bad(struct walk *w, const char *file, uint64_t line, uint64_t seq, const char *fmt, ...) {
        va_list ap;

        w->v->ok = false;
        w->v->line = line;
        w->v->seq = seq;
        (void) snprintf(w->v->file, sizeof(w->v->file), "%s", file);
        va_start(ap, fmt);
        (void) vsnprintf(w->v->why, sizeof(w->v->why), fmt, ap);
        va_end(ap);
        return BAD;
}

/* Root and signature of each head whose size has been reached. */
static int heads_compare(struct walk *w) {
        for (size_t i = 0; i < HEADS; i++) {
                struct signed_head *s = &w->heads[i];
                uint8_t a[HASH_BYTES], b[HASH_BYTES];

                if (!s->present || s->reached || s->h.tree.size != w->tree.size)
                        continue;
                s->reached = true;
                s->unsure = w->unsure;
                s->key = w->key;
                s->older_key = w->older_key;
                s->older_ok = w->older_ok;
                merkle_root(&w->tree, a);
                merkle_root(&s->h.tree, b);
                if (memcmp(a, b, HASH_BYTES) != 0 || memcmp(w->prev, s->h.last, HASH_BYTES) != 0)
                        return bad(w, s->name, 0, w->tree.size,
                                   "the head signs another history: its root over %" PRIu64 " records differs",
                                   w->tree.size);
        }
        return 0;
}

static int hash_add(struct walk *w, const uint8_t hash[HASH_BYTES]) {
        uint8_t leaf[HASH_BYTES];

        if (w->want_hashes && w->tree.size == w->cap) {
                size_t cap = w->cap ? 2 * w->cap : 1024;
                void *more = realloc(w->v->hashes, cap * HASH_BYTES);

                if (!more)
                        return err_set(w->err, -ENOMEM, ERR_INTERNAL, "verifying: out of memory");
                w->v->hashes = more;
                w->cap = cap;
        }
        if (w->want_hashes)
                memcpy(w->v->hashes[w->tree.size], hash, HASH_BYTES);
        merkle_leaf(leaf, hash, HASH_BYTES);
        merkle_add(&w->tree, leaf);
        memcpy(w->prev, hash, HASH_BYTES);
        return heads_compare(w);
}

static ssize_t key_find(const struct ledger_trust *t, const uint8_t pub[SIGN_PUBLIC]) {
        for (size_t i = 0; i < t->n_keys; i++)
                if (memcmp(t->keys[i], pub, SIGN_PUBLIC) == 0)
                        return (ssize_t) i;
        return -1;
}

/* A key that a trusted one hands over to is trusted from here on, and alone. */
static void key_change(struct walk *w, const struct json *fields) {
        const char *new_key = json_get_str(fields, "new_key"), *sig_text = json_get_str(fields, "signature");
        struct ledger_trust *t = w->trust;
        uint8_t pub[SIGN_PUBLIC], sig[SIGN_BYTES];
        struct buf text = BUF_INIT(512);
        ssize_t old = -1, at;

        if (!new_key || !sig_text || str_unhex(pub, SIGN_PUBLIC, new_key) < 0 ||
            str_unhex(sig, SIGN_BYTES, sig_text) < 0)
                return;
        chain_handover(&text, w->heads[0].h.tenant, pub);
        for (size_t i = 0; i < t->n_keys && old < 0; i++)
                if (sign_check(t->keys[i], buf_str(&text), text.len, sig))
                        old = (ssize_t) i;
        buf_done(&text);
        at = key_find(t, pub);
        if (at < 0 && old >= 0 && t->n_keys < LEDGER_KEYS) {
                memcpy(t->keys[t->n_keys], pub, SIGN_PUBLIC);
                at = (ssize_t) t->n_keys++;
        }
        if (at < 0)
                return; /* handed over by and to strangers: before the time of the keys we were given */
        w->unsure = false;
        w->older_ok = old >= 0;
        w->older_key = old >= 0 ? (size_t) old : (size_t) at;
        w->key = (size_t) at;
}

/* Records about the log itself change what must hold. Only those are parsed. */
static int log_record(struct walk *w, const struct ledger_line *l) {
        CLEANUP(json_freep) struct json *doc = NULL;
        const struct json *fields;
        struct err why = { 0 };
        const char *code;

        if (!memmem(l->text, l->n, "\"event_code\":\"log.", 18)) {
                w->older_ok = false; /* a new key signs from the first record of others on */
                return 0;
        }
        if (json_parse("record", l->text, l->n, &doc, &why) < 0)
                return bad(w, l->file, l->line, l->seq, "it is not JSON");
        code = json_get_str(json_get(doc, "metadata"), "event_code");
        fields = json_get(json_get(doc, "unmapped"), "fields");
        if (code && str_eq(code, "log.key_changed"))
                key_change(w, fields);
        if (code && str_eq(code, "log.dropped")) {
                int64_t last = json_get_int(fields, "last", 0);

                if (last > 0 && (uint64_t) last > w->dropped_to)
                        w->dropped_to = (uint64_t) last;
        }
        return 0;
}

static int on_line(void *arg, const struct ledger_line *l) {
        struct walk *w = arg;
        uint8_t hash[HASH_BYTES];
        struct err why = { 0 };
        uint64_t seq = w->tree.size + 1;
        int r = audit_record_check(l->text, l->n, seq, w->prev, hash, &why);

        if (r < 0 || l->unfinished)
                return bad(w, l->file, l->line, seq, "%s", r < 0 ? why.msg : "its end is missing");
        r = log_record(w, l);
        return r != 0 ? r : hash_add(w, hash);
}

static int head_load(struct walk *w, size_t i, const char *name, const char *tenant) {
        struct signed_head *s = &w->heads[i];
        struct err why = { 0 };
        const char *end;
        size_t n = chain_trim(s->note);

        s->name = name;
        if (n == 0)
                return 0;
        end = strstr(s->note, "\n\n");
        if (!end || audit_head_parse(s->note, (size_t) (end - s->note) + 1, &s->h, &why) < 0 ||
            !str_eq(s->h.tenant, tenant))
                return bad(w, name, 0, 0, "it is not a head of this log");
        s->present = true;
        return 0;
}

/* Padding is part of the file: a changed byte there is a change, too. */
static int padding_check(struct walk *w, const char *name, const char page[AUDIT_HEAD_BYTES]) {
        size_t n = strnlen(page, AUDIT_HEAD_BYTES);

        if (n != 0 && n != AUDIT_HEAD_BYTES)
                return bad(w, name, 0, 0, "it is cut short");
        return 0;
}

static int heads_load(struct walk *w, int dir_fd, const char *tenant) {
        static const char *const names[2] = { "head.0", "head.1" };
        char pages[2][AUDIT_HEAD_BYTES];
        int r = chain_notes(dir_fd, pages, w->err);

        for (size_t i = 0; r == 0 && i < 2; i++) {
                memcpy(w->heads[i].note, pages[i], AUDIT_HEAD_BYTES);
                r = padding_check(w, names[i], pages[i]);
                if (r == 0)
                        r = head_load(w, i, names[i], tenant);
        }
        if (r == 0 && w->trust->saved) {
                (void) snprintf(w->heads[2].note, AUDIT_HEAD_BYTES, "%s", w->trust->saved);
                r = head_load(w, 2, "the saved head", tenant);
        }
        if (r == 0 && !w->heads[0].present && !w->heads[1].present)
                r = bad(w, "head.0", 0, 0, "the log has no head");
        return r;
}

static int head_key_ok(const struct walk *w, const struct signed_head *s) {
        struct err why = { 0 };
        size_t text;

        for (size_t i = 0; i < w->trust->n_keys; i++) {
                bool may = s->unsure || i == s->key || (s->older_ok && i == s->older_key);
                int r = sign_note_open(s->note, strlen(s->note), w->trust->keys[i], &text, &why);

                if (r == 0 && may)
                        return 1;
                if (r == -EBADMSG)
                        return 0;
        }
        return -ENOKEY;
}

static int signatures_check(struct walk *w) {
        for (size_t i = 0; i < HEADS; i++) {
                const struct signed_head *s = &w->heads[i];
                int r = s->present ? head_key_ok(w, s) : 1;

                if (r <= 0)
                        return bad(w, s->name, 0, s->h.tree.size, "%s",
                                   r == 0 ? "its signature does not match"
                                          : "it is signed by a key that is not trusted");
        }
        return 0;
}

/* Could what stands behind the head be the beginning of a batch that is being written? */
static bool tail_plausible(const struct audit_head *h, int dir_fd) {
        char name[CHAIN_FILE], line[AUDIT_LINE_MAX];
        uint8_t hash[HASH_BYTES];
        struct err why = { 0 };
        AUTO_FD int fd = -1;
        const char *end;
        ssize_t n;

        chain_file(name, h->segment);
        fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        n = fd < 0 ? 0 : pread(fd, line, sizeof(line), (off_t) h->offset);
        end = n > 0 ? memchr(line, '\n', (size_t) n) : NULL;
        return !end || audit_record_check(line, (size_t) (end - line), h->tree.size + 1, h->last, hash, &why) == 0;
}

/* Nothing may stand behind the newest head. A writer may be between batch and head: it gets two seconds. */
static int tail_check(struct walk *w, int dir_fd, const char *dir, const char *tenant,
                      const struct audit_head *newest) {
        struct audit_head now = *newest;

        for (int i = 0;; i++) {
                AUTO_FREE uint64_t *first = NULL;
                char name[CHAIN_FILE], note[AUDIT_HEAD_BYTES];
                struct stat st = { 0 };
                int n = chain_segments(dir_fd, &first, w->err);

                if (n < 0)
                        return n;
                chain_file(name, now.segment);
                if ((fstatat(dir_fd, name, &st, 0) < 0 || (uint64_t) st.st_size <= now.offset) &&
                    (n == 0 || first[n - 1] <= now.segment))
                        return 0;
                if (i == TRIES || !tail_plausible(&now, dir_fd))
                        return bad(w, name, 0, now.tree.size + 1, "records behind the last signed one");
                (void) poll(NULL, 0, TRY_MS);
                if (ledger_head(dir, tenant, note, &now, w->err) < 0)
                        return w->err->code;
        }
}

/* What was dropped: its hashes are kept, and fit the tree like any others. */
static int dropped_walk(struct walk *w, int dir_fd, uint64_t first) {
        uint8_t(*leaves)[HASH_BYTES] = NULL;
        int r = 0;

        w->v->first_kept = first;
        if (first == 1)
                return 0;
        if (chain_leaves(dir_fd, first - 1, &leaves, w->err) < 0)
                return bad(w, "leaves", 0, 1, "record 1 is missing, and so are the hashes of what was dropped");
        for (uint64_t i = 0; r == 0 && i + 1 < first; i++)
                r = hash_add(w, leaves[i]);
        free(leaves);
        return r;
}

static int segments_walk(struct walk *w, int dir_fd, const struct audit_head *newest) {
        AUTO_FREE uint64_t *first = NULL;
        int n = chain_segments(dir_fd, &first, w->err), r = 0;

        if (n < 0)
                return n;
        if (n == 0 && newest->tree.size > 0)
                return bad(w, "", 0, 1, "record 1 is missing: there is no file of records");
        if (n > 0)
                r = dropped_walk(w, dir_fd, first[0]);
        for (int i = 0; r == 0 && i < n && first[i] <= newest->segment; i++) {
                char name[CHAIN_FILE];
                uint64_t until = first[i] == newest->segment ? newest->offset : UINT64_MAX;

                chain_file(name, first[i]);
                if (first[i] != w->tree.size + 1)
                        return bad(w, name, 0, w->tree.size + 1, "record %" PRIu64 " is missing before this file",
                                   w->tree.size + 1);
                if (until > 0)
                        r = chain_lines(dir_fd, first[i], until, on_line, w, w->err);
        }
        if (r == 0 && w->tree.size < newest->tree.size) {
                char name[CHAIN_FILE];

                chain_file(name, newest->segment);
                r = bad(w, name, 0, w->tree.size + 1, "record %" PRIu64 " is missing: the log was cut short",
                        w->tree.size + 1);
        }
        if (r == 0 && w->v->first_kept > 1 && w->dropped_to + 1 < w->v->first_kept)
                r = bad(w, "", 0, w->dropped_to + 1,
                        "record %" PRIu64 " is missing, and no record says that it was dropped", w->dropped_to + 1);
        return r;
}

static int judge(struct walk *w, const char *dir, const char *tenant) {
        AUTO_FD int dir_fd = chain_dir(dir, tenant, w->err);
        const struct audit_head *newest;
        size_t at;
        int r;

        if (dir_fd < 0)
                return dir_fd;
        r = heads_load(w, dir_fd, tenant);
        if (r != 0)
                return r;
        at = !w->heads[0].present || (w->heads[1].present && w->heads[1].h.tree.size > w->heads[0].h.tree.size);
        newest = &w->heads[at].h;
        memcpy(w->v->note, w->heads[at].note, AUDIT_HEAD_BYTES);
        if (newest->tree.size > 0 && !(w->heads[0].present && w->heads[1].present))
                return bad(w, w->heads[0].present ? "head.1" : "head.0", 0, 0, "it is missing");
        w->v->size = newest->tree.size;
        w->v->time_ms = newest->time_ms;
        (void) str_copy(w->heads[0].h.tenant, sizeof(w->heads[0].h.tenant), tenant);
        r = heads_compare(w); /* heads of nothing */
        if (r == 0)
                r = segments_walk(w, dir_fd, newest);
        for (size_t i = 0; r == 0 && i < HEADS; i++)
                if (w->heads[i].present && !w->heads[i].reached)
                        r = bad(w, w->heads[i].name, 0, w->heads[i].h.tree.size,
                                "the head covers %" PRIu64 " records, the log has %" PRIu64, w->heads[i].h.tree.size,
                                w->tree.size);
        if (r == 0)
                r = signatures_check(w);
        return r != 0 ? r : tail_check(w, dir_fd, dir, tenant, newest);
}

int ledger_verify(const char *dir, const char *tenant, struct ledger_trust *trust, bool want_hashes,
                  struct ledger_verdict *ret, struct err *err) {
        struct walk *w = calloc(1, sizeof(*w));
        int r;

        memset(ret, 0, sizeof(*ret));
        ret->ok = true;
        ret->first_kept = 1;
        if (!w)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "verifying: out of memory");
        *w = (struct walk){ .v = ret, .trust = trust, .want_hashes = want_hashes, .unsure = true, .err = err };
        r = judge(w, dir, tenant);
        free(w);
        return r < 0 ? r : 0;
}

static int key_add(struct ledger_trust *t, const char *path) {
        struct err why = { 0 };

        if (t->n_keys == LEDGER_KEYS || sign_public_read(path, t->keys[t->n_keys], &why) < 0)
                return -ENOENT;
        t->n_keys++;
        return 0;
}

int ledger_own_keys(const char *dir, struct ledger_trust *ret, struct err *err) {
        char path[LEDGER_PATH + 64];
        struct dirent *e;
        DIR *d;

        ret->n_keys = 0;
        (void) snprintf(path, sizeof(path), "%.400s/keys/signing.pub", dir);
        if (key_add(ret, path) < 0)
                return err_set(err, -ENOENT, ERR_NOT_FOUND, "audit log %.150s: keys/signing.pub cannot be read", dir);
        (void) snprintf(path, sizeof(path), "%.400s/keys", dir);
        d = opendir(path);
        while (d && (e = readdir(d))) {
                (void) snprintf(path, sizeof(path), "%.400s/keys/%.40s", dir, e->d_name);
                if (str_has_prefix(e->d_name, "retired-"))
                        (void) key_add(ret, path);
        }
        if (d)
                (void) closedir(d);
        return 0;
}
