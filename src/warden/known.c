/*
 * known.c - policies as they come. Most are alike, and a policy is large: one text is decoded once, and shared by all
 * that need it while they do. A few stay beyond that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "ipc/ipc.h"
#include "json/json.h"
#include "state.h"

enum { KEPT = 8 };

static TAILQ_HEAD(known_list, known) all = TAILQ_HEAD_INITIALIZER(all); /* newest first */
static unsigned n_all;

/* Memory, processor, processes, time and output are set when a sandbox is claimed, and so are the name of the policy
 * and the rules of its network, if it has one. */
static int shape_of(const struct policy *p, char dst[HASH_TEXT], struct err *err) {
        static struct policy plain, std; /* borrows */

        policy_default(&std);
        plain = *p;
        (void) str_copy(plain.name, sizeof(plain.name), std.name);
        plain.limits.memory_bytes = std.limits.memory_bytes;
        plain.limits.cpu_milli = std.limits.cpu_milli;
        plain.limits.pids = std.limits.pids;
        plain.limits.time_ms = std.limits.time_ms;
        plain.limits.output_bytes = std.limits.output_bytes;
        plain.net = NULL;
        return policy_hash(&plain, dst, err);
}

static int decode(struct known *k, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        int r = json_parse("policy", k->text, k->n, &doc, err);

        policy_default(&k->it);
        if (r == 0)
                r = policy_decode(doc, &k->it, err);
        if (r < 0)
                return r == -EBADMSG || r == -EPROTO ? -EINVAL : r;
        if (k->it.n_mounts > 0) /* whose files they would be is not decided by a process that parses requests */
                return err_set(err, -EOPNOTSUPP, ERR_DENIED,
                               "filesystem.mounts: not available in sandboxes of the server");
        r = policy_canonical(&k->it, &k->canonical, err);
        if (r < 0)
                return r;
        hash_text(k->hash, k->canonical, strlen(k->canonical));
        return shape_of(&k->it, k->shape, err);
}

static void known_free(struct known *k) {
        policy_done(&k->it);
        free(k->canonical);
        free(k->text);
        free(k);
}

/* The oldest that nobody needs make room. */
static void trim(void) {
        struct known *k, *before;

        for (k = TAILQ_LAST(&all, known_list); k && n_all > KEPT; k = before) {
                before = TAILQ_PREV(k, known_list, link);
                if (k->refs > 0)
                        continue;
                TAILQ_REMOVE(&all, k, link);
                n_all--;
                known_free(k);
        }
}

int known_read(int fd, struct known **ret, struct err *err) {
        AUTO_FREE char *text = NULL;
        struct known *k;
        size_t n;
        int r = ipc_blob_read(fd, WP_POLICY_BYTES, &text, &n, err);

        if (r < 0)
                return r == -EBADMSG || r == -EPROTO ? -EINVAL : r;
        TAILQ_FOREACH(k, &all, link) {
                if (k->n == n && memcmp(k->text, text, n) == 0) {
                        *ret = known_ref(k);
                        return 0;
                }
        }
        k = calloc(1, sizeof(*k));
        if (!k)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        k->text = TAKE_PTR(text);
        k->n = n;
        r = decode(k, err);
        if (r < 0) {
                known_free(k);
                return r;
        }
        TAILQ_INSERT_HEAD(&all, k, link);
        n_all++;
        *ret = known_ref(k);
        trim();
        return 0;
}

struct known *known_ref(struct known *k) {
        if (k)
                k->refs++;
        return k;
}

void known_drop(struct known **k) {
        if (*k)
                (*k)->refs--;
        *k = NULL;
}
