/* record_box.c - the life of a sandbox in the audit log: from its plan, which is kept, to what became of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/record.h"
#include "daemon/scribe.h"
#include "daemon/warden.h"
#include "ipc/ipc.h"
#include "json/json.h"
#include "ledger/ledger.h"
#include "policy/policy.h"

void record_create(struct audit_event *ev, const struct store_sandbox *row, const char *key) {
        audit_event_init(ev, AUDIT_SANDBOX_CREATED, row->tenant, row->id);
        (void) str_copy(ev->actor, sizeof(ev->actor), key);
        (void) str_copy(ev->policy, sizeof(ev->policy), row->policy_hash);
        audit_object(ev, row->template);
        audit_text(ev, "tier", policy_tier_name(POLICY_TIER_NS));
        audit_text(ev, "template", row->template);
        audit_text(ev, "storage", "memory");
        audit_number(ev, "memory_bytes", (int64_t) row->memory_bytes);
        audit_number(ev, "cpu_milli", row->cpu_milli);
        audit_number(ev, "disk_bytes", (int64_t) row->disk_bytes);
        audit_number(ev, "time_ms", (int64_t) (row->ends_ms - row->created_ms));
        if (row->name[0])
                audit_text(ev, "name", row->name);
}

/* --- what was read back --- */

struct starting {
        struct daemon *d;
        char tenant[ID_TEXT], id[ID_TEXT], policy[HASH_TEXT];
};

/* A part of the document has the hash of its canonical text. */
static void part_hash(struct audit_event *ev, const struct json *doc, const char *key) {
        AUTO_FREE char *text = NULL;
        char hash[HASH_TEXT];
        struct err err;

        if (json_get(doc, key) && json_text(json_get(doc, key), false, &text, &err) == 0) {
                hash_text(hash, text, strlen(text));
                audit_text(ev, key, hash);
        }
}

static void on_statement(void *arg, const struct err *failed, const struct warden_reply *reply) {
        AUTO_FREE struct starting *s = arg;
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *text = NULL;
        struct audit_event ev;
        struct err err = { 0 };
        size_t n = 0;

        if (failed && failed->code == -ENOENT)
                return; /* it has ended meanwhile */
        if (!failed && ipc_blob_read(reply->fd, LEDGER_STATEMENT_MAX, &text, &n, &err) == 0)
                (void) json_parse("statement", text, n, &doc, &err);
        if (failed || !doc) {
                log_error(&s->d->log, "what was read back of a sandbox is not kept", failed ? failed : &err);
                return;
        }
        audit_event_init(&ev, AUDIT_EVIDENCE, s->tenant, s->id);
        (void) str_copy(ev.policy, sizeof(ev.policy), s->policy);
        audit_object(&ev, "read-back");
        part_hash(&ev, doc, "evidence");
        part_hash(&ev, doc, "plan");
        scribe_note(s->d->scribe, &ev, "start", text, n);
}

void record_running(struct daemon *d, const struct store_sandbox *row) {
        struct starting *s = d->scribe ? calloc(1, sizeof(*s)) : NULL;

        if (!s)
                return;
        s->d = d;
        memcpy(s->tenant, row->tenant, sizeof(s->tenant));
        memcpy(s->id, row->id, sizeof(s->id));
        memcpy(s->policy, row->policy_hash, sizeof(s->policy));
        warden_ask(d->warden, WP_STATEMENT, row->id, on_statement, s);
}

/* --- what became of it --- */

static const struct {
        const char *kind, *id, *method, *verified;
} parts[] = {
        { "processes", "pid 1", "kill", "the warden saw pid 1 end, with it its namespace" },
        { "namespaces", "all", "last process ended", "pid 1 is gone" },
        { "files", "/", "memoryFreed", "the namespace that held the tmpfs is gone" },
        { "cgroup", "its groups", "rmdir", "the kernel removed them, so nobody was left inside" },
        { "place", "sockets, record", "unlink", "the warden removed them before it told the end" },
};

static void receipt(struct buf *to, struct audit_event *ev, const struct json *data) {
        struct json_emit e = { .to = to };
        char time[CLOCK_TEXT];

        clock_rfc3339(time);
        json_emit_object(&e, NULL);
        json_emit_array(&e, "artifacts");
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                audit_item(ev, parts[i].kind, parts[i].id, parts[i].method, true);
                json_emit_object(&e, NULL);
                json_emit_str(&e, "id", parts[i].id);
                json_emit_str(&e, "kind", parts[i].kind);
                json_emit_str(&e, "method", parts[i].method);
                json_emit_str(&e, "result", "removed");
                json_emit_str(&e, "verifiedBy", parts[i].verified);
                json_emit_close(&e, '}');
        }
        json_emit_close(&e, ']');
        json_emit_int(&e, "failures", 0);
        json_emit_str(&e, "finishedAt", time);
        json_emit_str(&e, "reason", json_get_str(data, "reason"));
        json_emit_array(&e, "retained");
        json_emit_close(&e, ']');
        json_emit_str(&e, "sandbox", ev->sandbox);
        json_emit_str(&e, "storage", "memory");
        json_emit_str(&e, "tenant", ev->tenant);
        json_emit_close(&e, '}');
}

static void removed(struct daemon *d, struct audit_event *ev, const struct json *data) {
        struct buf text = BUF_INIT(8192);
        char hash[HASH_TEXT];

        receipt(&text, ev, data);
        hash_text(hash, buf_str(&text), text.len);
        audit_text(ev, "receipt", hash);
        audit_text(ev, "storage", "memory");
        audit_number(ev, "failures", 0);
        scribe_note(d->scribe, ev, "end", buf_str(&text), text.len);
        buf_done(&text);
}

void record_ended(struct daemon *d, const char *tenant, const char *sandbox, const struct json *data, int cleaned) {
        const char *reason = json_get_str(data, "reason");
        struct audit_event ev;

        if (!d->scribe)
                return;
        audit_event_init(&ev, AUDIT_SANDBOX_ENDED, tenant, sandbox);
        audit_text(&ev, "reason", reason ? reason : "lost");
        if (json_get(data, "lived_ms"))
                audit_number(&ev, "duration_ms", json_get_int(data, "lived_ms", 0));
        if (json_get(data, "cpu_us")) {
                audit_number(&ev, "cpu_ms", json_get_int(data, "cpu_us", 0) / 1000);
                audit_number(&ev, "memory_peak_bytes", json_get_int(data, "memory_peak_bytes", 0));
                audit_number(&ev, "oom_kills", json_get_int(data, "oom_kills", 0));
        }
        scribe_note(d->scribe, &ev, NULL, NULL, 0);
        audit_event_init(&ev, AUDIT_SANDBOX_REMOVED, tenant, sandbox);
        if (cleaned) {
                removed(d, &ev, data);
                return;
        }
        audit_text(&ev, "reason", "lost");
        audit_text(&ev, "note", "it was gone when the server looked; who removed it is not known");
        scribe_note(d->scribe, &ev, NULL, NULL, 0);
}
