/* record_box.c - the life of a sandbox in the audit log: from its plan, which is kept, to what became of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/box.h"
#include "daemon/daemon.h"
#include "daemon/record.h"
#include "daemon/scribe.h"
#include "daemon/warden.h"
#include "ipc/ipc.h"
#include "json/json.h"
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

struct asking {
        struct daemon *d;
        char tenant[ID_TEXT], id[ID_TEXT], policy[HASH_TEXT];
};

static void read_back(const struct asking *a, const struct wp_hashes *h, int fd) {
        struct audit_event ev;

        audit_event_init(&ev, AUDIT_EVIDENCE, a->tenant, a->id);
        (void) str_copy(ev.policy, sizeof(ev.policy), a->policy);
        audit_object(&ev, "read-back");
        audit_text(&ev, "evidence", h->evidence);
        audit_text(&ev, "plan", h->plan);
        scribe_keep(a->d->scribe, &ev, "start", fd);
}

static void on_statement(void *arg, const struct err *failed, const struct warden_reply *reply) {
        AUTO_FREE struct asking *a = arg;

        if (failed && failed->code != -ENOENT) /* else it has ended meanwhile */
                log_error(&a->d->log, "what was read back of a sandbox is not kept", failed);
        else if (!failed)
                read_back(a, &reply->hashes, fcntl(reply->fd, F_DUPFD_CLOEXEC, 0));
}

void record_running(const struct box *b, const char *policy) {
        static const struct err no_memory = { .code = -ENOMEM, .kind = ERR_INTERNAL, .msg = "out of memory" };
        struct asking *a;

        if (!b->d->scribe)
                return;
        a = calloc(1, sizeof(*a));
        if (!a) {
                log_error(&b->d->log, "what was read back of a sandbox is not kept", &no_memory);
                return;
        }
        a->d = b->d;
        memcpy(a->tenant, b->tenant, sizeof(a->tenant));
        memcpy(a->id, b->id, sizeof(a->id));
        (void) str_copy(a->policy, sizeof(a->policy), policy);
        warden_ask(b->d->warden, WP_STATEMENT, b->id, on_statement, a);
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
        struct err err = { 0 };
        char hash[HASH_TEXT];

        receipt(&text, ev, data);
        hash_text(hash, buf_str(&text), text.len);
        audit_text(ev, "receipt", hash);
        audit_text(ev, "storage", "memory");
        audit_number(ev, "failures", 0);
        scribe_keep(d->scribe, ev, "end", ipc_blob_make(buf_str(&text), text.len, &err));
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
        scribe_note(d->scribe, &ev);
        audit_event_init(&ev, AUDIT_SANDBOX_REMOVED, tenant, sandbox);
        if (cleaned) {
                removed(d, &ev, data);
                return;
        }
        audit_text(&ev, "reason", "lost");
        audit_text(&ev, "note", "it was gone when the server looked; who removed it is not known");
        scribe_note(d->scribe, &ev);
}
