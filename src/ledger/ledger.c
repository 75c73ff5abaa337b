/* ledger.c - the chains of one directory, their key, and what is kept beside them. */
#include "ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "ledger/chain.h"
#include "ledger/pack.h"

struct ledger *ledger_free(struct ledger *l) {
        struct err err = { 0 };

        if (l)
                (void) ledger_sync(l, &err);
        while (l && l->chains) {
                struct chain *next = l->chains->next;

                (void) chain_free(l->chains);
                l->chains = next;
        }
        if (l)
                (void) sign_key_free(l->key);
        free(l);
        return NULL;
}

void ledger_freep(struct ledger **l) {
        *l = ledger_free(*l);
}

/* The directory, ours alone to write; auditors may enter. */
static int place_make(const struct ledger *l, struct err *err) {
        mode_t mode = l->s.readers != (gid_t) -1 ? 0750 : 0700;
        AUTO_FD int fd = -1;
        struct stat st;

        if (mkdir(l->dir, mode) < 0 && errno != EEXIST)
                return err_set(err, -errno, ERR_INTERNAL, "audit log %.150s: %s", l->dir, strerror(errno));
        fd = open(l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "audit log %.150s: %s", l->dir, strerror(errno));
        if (st.st_uid != geteuid() || (st.st_mode & 022))
                return err_set(err, -EPERM, ERR_DENIED, "audit log %.150s must belong to you alone; chmod go-w it",
                               l->dir);
        if (l->s.readers != (gid_t) -1 && (fchown(fd, (uid_t) -1, l->s.readers) < 0 || fchmod(fd, mode) < 0))
                return err_set(err, -errno, ERR_INTERNAL, "audit log %.150s: group of the readers: %s", l->dir,
                               strerror(errno));
        /* The public half is for everybody who comes this far. */
        if ((mkdir(l->keys, 0700) < 0 && errno != EEXIST) || chmod(l->keys, 0755) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "audit log %.150s: %s", l->keys, strerror(errno));
        return 0;
}

int ledger_open(const struct ledger_settings *s, struct ledger **ret, struct err *err) {
        CLEANUP(ledger_freep) struct ledger *l = calloc(1, sizeof(*l));
        char next[LEDGER_PATH + 16];
        int r;

        if (!l)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "audit log: out of memory");
        l->s = *s;
        if (strlen(s->dir) > 400 || str_copy(l->dir, sizeof(l->dir), s->dir) < 0)
                return err_set(err, -ENAMETOOLONG, ERR_INVALID, "audit log %.150s: the path is too long", s->dir);
        (void) snprintf(l->keys, sizeof(l->keys), "%.400s/keys", l->dir);
        if (s->node)
                (void) snprintf(l->node, sizeof(l->node), "%s", s->node);
        else if (gethostname(l->node, sizeof(l->node) - 1) < 0)
                (void) str_copy(l->node, sizeof(l->node), "localhost");
        l->s.dir = l->dir;
        l->s.node = l->node;
        r = place_make(l, err);
        if (r == 0)
                r = sign_key_open(l->keys, &l->key, err);
        (void) snprintf(next, sizeof(next), "%s/next.key", l->keys);
        if (r == 0 && access(next, F_OK) == 0) /* a change of keys was cut short: it is done again, whole */
                r = ledger_rotate_key(l, err);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

int ledger_chain(struct ledger *l, const char *tenant, struct chain **ret, struct err *err) {
        int r;

        for (struct chain *c = l->chains; c; c = c->next)
                if (str_eq(c->tenant, tenant)) {
                        *ret = c;
                        return 0;
                }
        if (l->n_chains == LEDGER_TENANTS)
                return err_set(err, -EMFILE, ERR_LIMIT, "audit log: more than %d tenants", LEDGER_TENANTS);
        r = chain_open(&l->s, tenant, ret, err);
        if (r < 0)
                return r;
        (*ret)->next = l->chains;
        l->chains = *ret;
        l->n_chains++;
        return 0;
}

int ledger_append(struct ledger *l, const struct audit_event *ev, uint64_t *ret_seq, struct err *err) {
        struct chain *c;
        int r = audit_event_check(ev, err);

        if (r == 0)
                r = ledger_chain(l, ev->tenant, &c, err);
        if (r == 0)
                r = chain_begin(c, &l->s, &l->key, err);
        if (r == 0)
                r = chain_add(c, &l->s, ev, err);
        if (r == 0)
                *ret_seq = c->ahead.tree.size;
        return r;
}

int ledger_commit(struct ledger *l, struct err *err) {
        int first = 0;

        for (struct chain *c = l->chains; c; c = c->next) {
                if (!c->locked)
                        continue;
                c->result = (struct err){ 0 };
                if (chain_commit(c, l->key, &c->result) < 0 && first == 0) {
                        *err = c->result;
                        first = err->code;
                }
        }
        return first;
}

int ledger_result(const struct ledger *l, const char *tenant, struct err *err) {
        for (const struct chain *c = l->chains; c; c = c->next)
                if (str_eq(c->tenant, tenant) && c->result.code < 0) {
                        *err = c->result;
                        return err->code;
                }
        return 0;
}

void ledger_undo(struct ledger *l) {
        for (struct chain *c = l->chains; c; c = c->next)
                if (c->locked)
                        chain_undo(c);
}

static bool name_ok(const char *s, size_t n) {
        return strlen(s) == n && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789") == n;
}

int ledger_statement(struct ledger *l, const char *tenant, const char *sandbox, const char *kind, const char *text,
                     size_t n, struct err *err) {
        struct chain *c;
        int r;

        if (!audit_tenant_ok(tenant) || !name_ok(sandbox, ID_LEN) || (!str_eq(kind, "start") && !str_eq(kind, "end")) ||
            n > LEDGER_STATEMENT_MAX)
                return err_set(err, -EINVAL, ERR_INVALID, "audit statement: bad tenant, sandbox, kind or size");
        r = ledger_chain(l, tenant, &c, err);
        if (r < 0)
                return r;
        r = pack_add(c, &l->s, sandbox, kind, text, n, err);
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "audit statement of %s: %s", sandbox, strerror(-r)) : 0;
}

int ledger_sync(struct ledger *l, struct err *err) {
        int result = 0;

        for (struct chain *c = l->chains; c; c = c->next) {
                int r = pack_sync(&c->pack);

                if (r < 0)
                        result = err_set(err, r, ERR_INTERNAL, "audit statements of tenant %s: %s", c->tenant,
                                         strerror(-r));
        }
        return result;
}

void chain_handover(struct buf *to, const char *tenant, const uint8_t pub[SIGN_PUBLIC]) {
        char hex[2 * SIGN_PUBLIC + 1];

        str_hex(hex, pub, SIGN_PUBLIC);
        buf_addf(to, "gabion audit key\n%s\n%s\n", tenant, hex);
}

struct change {
        struct ledger *l;
        uint8_t pub[SIGN_PUBLIC];
        struct err *err;
};

static int hand_over(void *arg, const char *tenant) {
        const struct change *ch = arg;
        struct audit_event ev;
        struct buf text = BUF_INIT(512);
        uint8_t sig[SIGN_BYTES];
        char hex[2 * SIGN_BYTES + 1], id[HASH_TEXT];
        struct chain *c;
        uint64_t seq;
        int r = ledger_chain(ch->l, tenant, &c, ch->err);

        if (r == 0)
                r = chain_begin(c, &ch->l->s, &ch->l->key, ch->err);
        if (r < 0)
                return r;
        chain_handover(&text, tenant, ch->pub);
        sign_bytes(ch->l->key, buf_str(&text), text.len, sig);
        buf_done(&text);
        audit_event_init(&ev, AUDIT_LOG_KEY_CHANGED, tenant, "");
        sign_key_id(ch->l->key, id);
        audit_text(&ev, "old_key", id);
        str_hex(hex, ch->pub, SIGN_PUBLIC);
        audit_text(&ev, "new_key", hex);
        str_hex(hex, sig, SIGN_BYTES);
        audit_text(&ev, "signature", hex);
        return ledger_append(ch->l, &ev, &seq, ch->err);
}

/* Signs the present head of a chain again, with the new key. */
static int sign_again(struct ledger *l, struct chain *c, struct err *err) {
        int r;

        c->known = false;
        r = chain_begin(c, &l->s, &l->key, err);
        return r < 0 ? r : chain_commit(c, l->key, err);
}

int ledger_rotate_key(struct ledger *l, struct err *err) {
        CLEANUP(sign_key_freep) struct sign_key *next = NULL;
        struct change ch = { .l = l, .err = err };
        int r = ledger_commit(l, err);

        if (r == 0)
                r = sign_key_next(l->keys, &next, err);
        if (r < 0)
                return r;
        sign_key_public(next, ch.pub);
        r = ledger_tenants(l->dir, hand_over, &ch, err);
        if (r < 0) {
                ledger_undo(l);
                return r;
        }
        r = ledger_commit(l, err); /* still signed by the old key */
        if (r == 0)
                r = sign_key_promote(l->keys, err);
        if (r < 0)
                return r;
        (void) sign_key_free(l->key);
        l->key = TAKE_PTR(next);
        for (struct chain *c = l->chains; r == 0 && c; c = c->next)
                r = sign_again(l, c, err);
        return r;
}

static int recover_one(void *arg, const char *tenant) {
        const struct change *ch = arg;
        struct chain *c;
        int r = ledger_chain(ch->l, tenant, &c, ch->err);

        if (r == 0)
                r = chain_begin(c, &ch->l->s, &ch->l->key, ch->err);
        if (r == -EUCLEAN)
                return 0; /* damaged: it refuses its records from now on, the others need not suffer */
        return r < 0 ? r : chain_settle(c, &ch->l->s, ch->err);
}

int ledger_recover(struct ledger *l, struct err *err) {
        struct change ch = { .l = l, .err = err };
        int r = ledger_tenants(l->dir, recover_one, &ch, err);

        if (r == 0)
                return ledger_commit(l, err);
        ledger_undo(l);
        return r;
}
