/* make.c - collecting and signing. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "dossier/dossier.h"
#include "json/json.h"
#include "ledger/ledger.h"

struct collect {
        const uint8_t (*nodes)[HASH_BYTES];
        size_t size;
        char mark[64]; /* what a record of the sandbox has in it */
        struct json *events;
        size_t n;
        struct err *err;
};

static int collect_one(void *arg, const struct ledger_line *l) {
        struct collect *c = arg;
        uint8_t path[MERKLE_PATH][HASH_BYTES];
        struct buf text = BUF_INIT((size_t) MERKLE_PATH * HASH_HEX);
        AUTO_FREE char *record = NULL;
        struct json *one;
        size_t len;

        if (l->seq > c->size || !memmem(l->text, l->n, c->mark, strlen(c->mark)))
                return 0;
        if (++c->n > DOSSIER_EVENTS)
                return err_set(c->err, -E2BIG, ERR_LIMIT,
                               "dossier: the sandbox has more than %d records; use 'gabion audit export'",
                               DOSSIER_EVENTS);
        record = strndup(l->text, l->n);
        if (!record)
                return err_set(c->err, -ENOMEM, ERR_INTERNAL, "dossier: out of memory");
        len = merkle_path(c->nodes, c->size, l->seq - 1, path);
        for (size_t i = 0; i < len; i++) {
                char hex[HASH_HEX];

                str_hex(hex, path[i], HASH_BYTES);
                buf_addf(&text, "%s%s", i ? " " : "", hex);
        }
        one = json_new_object();
        json_set_int(one, "index", (int64_t) l->seq - 1);
        json_set_str(one, "path", buf_str(&text));
        json_set_str(one, "record", record);
        json_add(c->events, one);
        buf_done(&text);
        return 0;
}

/* A kept document, as it was written: its hash is that of these bytes. */
static int document_add(struct json *doc, const char *dir, const char *tenant, const char *sandbox, const char *kind,
                        struct err *err) {
        AUTO_FREE char *text = NULL;
        struct err why = { 0 };
        size_t n;
        int r = ledger_statement_read(dir, tenant, sandbox, kind, &text, &n, &why);

        if (r < 0 && r != -ENOENT) {
                *err = why;
                return r;
        }
        json_set_str(doc, kind, r == 0 ? text : NULL);
        return 0;
}

/* The tree's nodes over all records. The caller frees *ret. */
static int nodes_make(struct ledger_verdict *v, uint8_t (**ret)[HASH_BYTES], struct err *err) {
        uint8_t(*nodes)[HASH_BYTES] = malloc((merkle_nodes(v->size) + 1) * HASH_BYTES);

        if (!nodes)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "dossier: out of memory");
        for (size_t i = 0; i < v->size; i++)
                merkle_leaf(nodes[i], v->hashes[i], HASH_BYTES);
        merkle_build(nodes, v->size);
        *ret = nodes;
        return 0;
}

static int payload_make(const char *dir, const char *tenant, const char *sandbox, struct ledger_verdict *v, char **ret,
                        struct err *err) {
        CLEANUP(json_freep) struct json *doc = json_new_object();
        uint8_t(*nodes)[HASH_BYTES] = NULL;
        struct collect c = { .size = v->size, .events = json_new_array(), .err = err };
        char time[CLOCK_TEXT];
        int r = nodes_make(v, &nodes, err);

        c.nodes = (const uint8_t(*)[HASH_BYTES]) nodes;
        (void) snprintf(c.mark, sizeof(c.mark), "\"container\":{\"uid\":\"%.20s\"}", sandbox);
        if (r == 0)
                r = ledger_each(dir, tenant, v->first_kept, collect_one, &c, err);
        free(nodes);
        if (r == 0 && c.n == 0)
                r = err_set(err, -ENOENT, ERR_NOT_FOUND, "dossier: the log of tenant %s has no sandbox %s", tenant,
                            sandbox);
        clock_rfc3339(time);
        json_set_str(doc, "type", "gabion.dossier");
        json_set_int(doc, "version", 1);
        json_set_str(doc, "made", time);
        json_set_str(doc, "tenant", tenant);
        json_set_str(doc, "sandbox", sandbox);
        json_set_str(doc, "head", v->note);
        json_set(doc, "events", c.events);
        if (r == 0)
                r = document_add(doc, dir, tenant, sandbox, "start", err);
        if (r == 0)
                r = document_add(doc, dir, tenant, sandbox, "end", err);
        return r < 0 ? r : json_text(doc, false, ret, err);
}

int dossier_make(const char *dir, const char *tenant, const char *sandbox, char **ret, struct err *err) {
        CLEANUP(sign_key_freep) struct sign_key *key = NULL;
        AUTO_FREE struct ledger_trust *trust = calloc(1, sizeof(*trust));
        AUTO_FREE struct ledger_verdict *v = calloc(1, sizeof(*v));
        AUTO_FREE char *payload = NULL;
        char path[LEDGER_PATH];
        int r;

        if (!trust || !v)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "dossier: out of memory");
        if (strlen(sandbox) != ID_LEN || strspn(sandbox, "abcdefghijklmnopqrstuvwxyz0123456789") != ID_LEN)
                return err_set(err, -EINVAL, ERR_INVALID, "'%.40s' is not the id of a sandbox", sandbox);
        r = ledger_own_keys(dir, trust, err);
        if (r == 0)
                r = ledger_verify(dir, tenant, trust, true, v, err);
        if (r == 0 && !v->ok)
                r = err_set(err, -EBADMSG, ERR_INTERNAL, "dossier: the log does not verify: record %" PRIu64 ": %s",
                            v->seq, v->why);
        if (r == 0)
                r = payload_make(dir, tenant, sandbox, v, &payload, err);
        free(v->hashes);
        (void) snprintf(path, sizeof(path), "%.400s/keys", dir);
        if (r == 0)
                r = sign_key_open(path, &key, err);
        return r < 0 ? r : sign_envelope(key, DOSSIER_TYPE, payload, ret, err);
}
