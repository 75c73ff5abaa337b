/*
 * receipt.c - what became of a sandbox: each thing it consisted of, how it was removed, and whether we looked.
 *
 * The receipt is kept as a document beside the log; its hash and the list are in the record.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "json/json.h"
#include "plan/plan.h"
#include "run/record.h"

struct receipt {
        struct audit_event *ev;
        struct json_emit *e;
        unsigned failed;
};

/* Into the record and into the document. */
static void artifact(struct receipt *rc, const char *kind, const char *id, const char *method, const char *verified,
                     bool ok) {
        audit_item(rc->ev, kind, id, method, ok);
        json_emit_object(rc->e, NULL);
        json_emit_str(rc->e, "id", id);
        json_emit_str(rc->e, "kind", kind);
        json_emit_str(rc->e, "method", method);
        json_emit_str(rc->e, "result", ok ? "removed" : "failed");
        json_emit_str(rc->e, "verifiedBy", verified);
        json_emit_close(rc->e, '}');
        rc->failed += !ok;
}

static void groups(const struct record *r, struct receipt *rc) {
        bool gone = true;

        for (size_t i = 0; i < r->n_groups; i++)
                gone = gone && access(r->groups[i], F_OK) < 0 && errno == ENOENT;
        if (r->n_groups > 0)
                artifact(rc, "cgroup", strrchr(r->groups[0], '/') + 1, "rmdir", "its directories are gone", gone);
}

/* Directories of the host that were shown inside are the caller's and stay. */
static void retained(struct json_emit *e, const struct plan *plan) {
        json_emit_array(e, "retained");
        for (size_t i = 0; i < plan->policy->n_mounts; i++) {
                if (!plan->policy->mounts[i].writable)
                        continue;
                json_emit_object(e, NULL);
                json_emit_str(e, "id", plan->policy->mounts[i].target);
                json_emit_str(e, "kind", "mount");
                json_emit_str(e, "reason", "a directory of the host, given by the caller");
                json_emit_close(e, '}');
        }
        json_emit_close(e, ']');
}

static void receipt_write(const struct record *r, const struct plan *plan, bool ok, struct receipt *rc) {
        struct json_emit *e = rc->e;
        bool dead = r->agent <= 0 || (kill(r->agent, 0) < 0 && errno == ESRCH);
        char number[32], from[CLOCK_TEXT], to[CLOCK_TEXT];

        clock_rfc3339_at(from, r->requested_ms);
        clock_rfc3339(to);
        json_emit_object(e, NULL);
        json_emit_array(e, "artifacts");
        (void) snprintf(number, sizeof(number), "%d", (int) r->agent);
        artifact(rc, "processes", number, "kill", "pid 1 was reaped, with it its namespace", dead);
        artifact(rc, "namespaces", r->sandbox, "last process ended", "pid 1 is gone", dead);
        artifact(rc, "files", "/", "memoryFreed", "the namespace that held the tmpfs is gone", dead && ok);
        groups(r, rc);
        artifact(rc, "place", r->sandbox, "unlink", "its janitor ended without complaint", ok);
        json_emit_close(e, ']');
        json_emit_int(e, "bytes", (int64_t) r->disk_bytes);
        json_emit_int(e, "failures", rc->failed);
        json_emit_str(e, "finishedAt", to);
        json_emit_str(e, "requestedAt", from);
        retained(e, plan);
        json_emit_str(e, "sandbox", r->sandbox);
        json_emit_str(e, "storage", "memory");
        json_emit_str(e, "tenant", r->tenant);
        json_emit_close(e, '}');
}

int record_removed(struct record *r, const struct plan *plan, bool ok, struct err *err) {
        struct buf text = BUF_INIT(LEDGER_STATEMENT_MAX);
        struct json_emit e = { .to = &text };
        struct audit_event ev;
        struct receipt rc = { .ev = &ev, .e = &e };
        struct notary_batch b;
        char hash[HASH_TEXT];
        int x;

        if (!r->begun)
                return 0;
        record_event(r, AUDIT_SANDBOX_REMOVED, &ev);
        receipt_write(r, plan, ok, &rc);
        hash_text(hash, buf_str(&text), text.len);
        audit_text(&ev, "receipt", hash);
        audit_text(&ev, "storage", "memory");
        audit_number(&ev, "bytes", (int64_t) r->disk_bytes);
        audit_number(&ev, "failures", rc.failed);
        notary_begin(&b);
        notary_put(&b, NOTARY_EVENT, &ev);
        notary_put(&b, NOTARY_NO_WILL, NULL);
        x = notary_send(&r->c, &b, "end", buf_str(&text), text.len, err);
        buf_done(&text);
        if (x == 0)
                x = notary_wait(&r->c, RECORD_WAIT_MS, err);
        return x < 0 ? err_wrap(err, "the end of sandbox %s is not recorded", r->sandbox) : 0;
}
