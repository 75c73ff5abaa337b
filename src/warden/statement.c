/*
 * statement.c - plans, and what is said of a sandbox that was made by one: what was read back, and all that belongs to
 * it as one document.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "evidence/evidence.h"
#include "json/json.h"
#include "state.h"

enum { PLANS = 16 };

static int fill(const struct plan *plan, const struct known *policy, struct record *into, struct err *err) {
        into->policy = strdup(policy->canonical);
        if (!into->policy)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        memcpy(into->policy_hash, policy->hash, sizeof(into->policy_hash));
        into->memory_limit = plan->policy->limits.memory_bytes;
        into->disk_limit = plan->tmpfs_bytes;
        return 0;
}

int statement_begin(const struct plan *plan, const struct known *policy, const struct evidence *ev, struct record *into,
                    struct err *err) {
        struct buf text = BUF_INIT(EVIDENCE_TEXT);
        int r = fill(plan, policy, into, err);

        if (r < 0)
                return r;
        evidence_brief(ev, &text);
        into->evidence = text.p;
        return text.bad ? err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory") : 0;
}

int statement_fill(const struct plan *plan, const struct known *policy, const struct sandbox *sb, struct evidence *ev,
                   struct record *into, struct err *err) {
        CLEANUP(buf_done) struct buf text = BUF_INIT(EVIDENCE_TEXT);
        int r = fill(plan, policy, into, err);

        if (r < 0)
                return r;
        memcpy(ev->policy, into->policy_hash, sizeof(ev->policy));
        memcpy(ev->plan, plan->hash, sizeof(ev->plan));
        r = evidence_text(plan, sb, ev, &text, err);
        if (r < 0)
                return r;
        hash_text(into->evidence_hash, text.p, text.len);
        into->evidence = TAKE_PTR(text.p);
        return 0;
}

/* The text of a plan takes longest of all, and most plans are alike: the last ones are remembered. */
static struct known_plan {
        char policy[HASH_TEXT], ceiling[HASH_TEXT], bind[WP_ADDRESS], hostname[PLAN_HOSTNAME], plan[HASH_TEXT];
        char *text;
} known[PLANS];

static int plan_render(struct plan *plan, struct known_plan *into, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *text = NULL;
        int r = plan_json(plan, &doc, err);

        if (r == 0)
                r = json_text(doc, false, &text, err);
        if (r < 0 || !text)
                return r;
        hash_text(plan->hash, text, strlen(text));
        free(into->text);
        into->text = TAKE_PTR(text);
        memcpy(into->plan, plan->hash, sizeof(plan->hash));
        return 0;
}

static int plan_known(struct plan *plan, const char *known_hash, struct err *err) {
        static size_t next;
        const char *bind = plan->net && plan->way_out.bind ? plan->way_out.bind : "";
        char policy[HASH_TEXT], ceiling[HASH_TEXT] = "";
        struct known_plan *k = &known[next];
        int r = known_hash ? str_copy(policy, sizeof(policy), known_hash) : policy_hash(plan->policy, policy, err);

        if (r == 0 && plan->net && plan->way_out.ceiling)
                r = policy_hash(plan->way_out.ceiling, ceiling, err);
        for (size_t i = 0; r == 0 && i < PLANS; i++)
                if (str_eq(known[i].policy, policy) && str_eq(known[i].hostname, plan->hostname) &&
                    str_eq(known[i].ceiling, ceiling) && str_eq(known[i].bind, bind)) {
                        memcpy(plan->hash, known[i].plan, sizeof(plan->hash));
                        return 0;
                }
        k->policy[0] = '\0';
        if (r == 0)
                r = plan_render(plan, k, err);
        if (r < 0)
                return r;
        memcpy(k->policy, policy, sizeof(policy));
        memcpy(k->ceiling, ceiling, sizeof(ceiling));
        (void) str_copy(k->bind, sizeof(k->bind), bind);
        memcpy(k->hostname, plan->hostname, sizeof(k->hostname));
        next = (next + 1) % PLANS;
        return 0;
}

int statement_make(const struct plan *plan, const struct record *rec, struct err *err) {
        CLEANUP(buf_done) struct buf all = BUF_INIT(IPC_BLOB_MAX);

        for (size_t i = 0; all.len == 0 && i < PLANS; i++)
                if (known[i].policy[0] && str_eq(known[i].plan, plan->hash)) {
                        const char *const parts[] = { "{\"evidence\":", rec->evidence, ",\"plan\":", known[i].text,
                                                      ",\"policy\":",   rec->policy,   "}" };

                        for (size_t k = 0; k < ARRAY_SIZE(parts); k++)
                                buf_add(&all, parts[k], strlen(parts[k]));
                }
        if (all.bad || all.len == 0)
                return err_set(err, -EOVERFLOW, ERR_INTERNAL, "sandbox %s: its statement is too long", rec->id);
        return ipc_blob_make(buf_str(&all), all.len, err);
}

int statement_plan(const struct policy *policy, const char *hash, const char *hostname, const struct plan_way_out *way,
                   struct plan *ret, struct err *err) {
        const struct plan_request req = { .hostname = hostname[0] ? hostname : NULL,
                                          .many_users = true,
                                          .way_out = *way };
        int r = plan_compile(policy, &req, &warden.facts, ret, err);

        return r < 0 ? r : plan_known(ret, hash, err);
}
