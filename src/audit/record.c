/*
 * record.c - one record of the log: an OCSF 1.8 event in canonical JSON, chained to the one before.
 *
 * The hash is that of the whole line with its own fingerprint left out, as OCSF's coming profile record_integrity has
 * it; until 1.9 the attestation stands under `unmapped`. Checking works on the bytes, not on a parsed tree: whatever
 * differs from what was written, differs in the hash.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/kinds.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"

/* In the text of a string every quote is escaped, so these can only occur as members. */
#define PRINT_OPEN "\"fingerprint\":{\"algorithm_id\":3,\"value\":\""
#define PRINT_CLOSE "\"},"
#define PREV_OPEN "\"prev_event\":{" PRINT_OPEN
#define SEQ_OPEN "\"sequence\":"

enum { PRINT_LEN = sizeof(PRINT_OPEN) - 1 + 64 + sizeof(PRINT_CLOSE) - 1 };

static const struct audit_field *field_find(const struct audit_event *ev, const char *key) {
        for (size_t i = 0; i < ev->n_fields; i++)
                if (str_eq(ev->fields[i].key, key))
                        return &ev->fields[i];
        return NULL;
}

static const char *field_str(const struct audit_event *ev, const char *key, const char *otherwise) {
        const struct audit_field *f = field_find(ev, key);

        return f && !f->is_number && f->text[0] ? f->text : otherwise;
}

static void lift_int(struct json_emit *e, const struct audit_event *ev, const char *from, const char *to) {
        const struct audit_field *f = field_find(ev, from);

        if (f && f->is_number)
                json_emit_int(e, to, f->number);
}

static void put_actor(struct json_emit *e, const struct audit_event *ev) {
        json_emit_object(e, "actor");
        if (ev->actor[0]) {
                json_emit_object(e, "user");
                json_emit_str(e, "uid", ev->actor);
                json_emit_close(e, '}');
        } else {
                json_emit_str(e, "app_uid", ev->sandbox[0] ? ev->sandbox : "gabion");
        }
        json_emit_close(e, '}');
}

/* api, app: what the classes of category 6 are about. */
static void put_application(struct json_emit *e, const struct audit_event *ev, unsigned class_uid) {
        if (class_uid == 6003) {
                json_emit_object(e, "api");
                json_emit_str(e, "operation", ev->kind == AUDIT_ADMIN ? ev->object : audit_class(ev->kind)->name);
                json_emit_close(e, '}');
        }
        if (class_uid == 6002) {
                json_emit_object(e, "app");
                json_emit_str(e, "name", ev->object[0] ? ev->object : "sandbox");
                if (ev->kind != AUDIT_PACKAGE_INSTALLED)
                        json_emit_str(e, "uid", ev->sandbox);
                if (field_find(ev, "version"))
                        json_emit_str(e, "version", field_str(ev, "version", ""));
                json_emit_close(e, '}');
        }
}

static void put_compliance(struct json_emit *e, const struct audit_event *ev, unsigned class_uid) {
        if (class_uid != 2003)
                return;
        json_emit_object(e, "compliance");
        json_emit_str(e, "control", ev->object[0] ? ev->object : "read-back");
        json_emit_array(e, "standards");
        json_emit_str(e, NULL, "plan of the sandbox");
        json_emit_close(e, ']');
        json_emit_int(e, "status_id", ev->decision == AUDIT_DENIED ? 3 : 1);
        json_emit_close(e, '}');
}

static void put_connection(struct json_emit *e, const struct audit_event *ev, unsigned category) {
        if (category != 4)
                return;
        json_emit_object(e, "connection_info");
        json_emit_int(e, "direction_id", 2);
        json_emit_str(e, "protocol_name", field_str(ev, "protocol", ev->kind == AUDIT_NET_NAME ? "udp" : "tcp"));
        json_emit_close(e, '}');
}

static void put_device(struct json_emit *e, const struct audit_event *ev, const char *node) {
        json_emit_object(e, "device");
        if (ev->sandbox[0]) {
                json_emit_object(e, "container");
                json_emit_str(e, "uid", ev->sandbox);
                json_emit_close(e, '}');
        }
        json_emit_str(e, "hostname", node);
        json_emit_int(e, "type_id", 1);
        json_emit_close(e, '}');
}

static void put_destination(struct json_emit *e, const struct audit_event *ev) {
        if (ev->kind != AUDIT_NET_CONTACT && ev->kind != AUDIT_NET_REQUEST)
                return;
        json_emit_object(e, "dst_endpoint");
        json_emit_str(e, "hostname", ev->object);
        if (field_find(ev, "ip"))
                json_emit_str(e, "ip", field_str(ev, "ip", ""));
        if (ev->port)
                json_emit_int(e, "port", ev->port);
        json_emit_close(e, '}');
}

static void put_entity(struct json_emit *e, const struct audit_event *ev, unsigned class_uid) {
        bool policy = ev->kind == AUDIT_POLICY_CHANGED;

        if (class_uid != 3004)
                return;
        json_emit_object(e, "entity");
        json_emit_str(e, "name", policy || ev->object[0] ? ev->object : "sandbox");
        json_emit_str(e, "type", policy ? "policy" : "sandbox");
        json_emit_int(e, "type_id", policy ? 5 : 99);
        if (ev->sandbox[0])
                json_emit_str(e, "uid", ev->sandbox);
        json_emit_close(e, '}');
}

static void put_evidences(struct json_emit *e, const struct audit_event *ev, unsigned class_uid) {
        if (class_uid != 2004)
                return;
        json_emit_array(e, "evidences");
        json_emit_object(e, NULL);
        json_emit_object(e, "data");
        json_emit_str(e, "control", ev->object);
        json_emit_str(e, "expected", field_str(ev, "expected", ""));
        json_emit_str(e, "found", field_str(ev, "found", ""));
        json_emit_close(e, '}');
        json_emit_close(e, '}');
        json_emit_close(e, ']');
}

static void put_file(struct json_emit *e, const struct audit_event *ev, unsigned class_uid) {
        const char *slash = strrchr(ev->object, '/');

        if (class_uid != 1001)
                return;
        json_emit_object(e, "file");
        json_emit_str(e, "name", slash ? slash + 1 : ev->object);
        json_emit_str(e, "path", ev->object);
        json_emit_int(e, "type_id", 1);
        json_emit_close(e, '}');
}

static void put_finding(struct json_emit *e, const struct audit_event *ev, unsigned category) {
        char title[AUDIT_OBJECT + 32];

        if (category != 2)
                return;
        (void) snprintf(title, sizeof(title), "%s: %s", audit_class(ev->kind)->name, ev->object);
        json_emit_object(e, "finding_info");
        json_emit_object(e, "analytic");
        json_emit_str(e, "name", ev->rule[0] ? ev->rule : "evidence equals plan");
        json_emit_int(e, "type_id", 1);
        json_emit_close(e, '}');
        json_emit_str(e, "title", title);
        json_emit_array(e, "types");
        json_emit_str(e, NULL, audit_class(ev->kind)->name);
        json_emit_close(e, ']');
        json_emit_str(e, "uid", ev->id);
        json_emit_close(e, '}');
}

static void put_metadata(struct json_emit *e, const struct audit_event *ev, const struct audit_place *at) {
        static const char *const profiles[] = { "container", "host", "security_control" };

        json_emit_object(e, "metadata");
        json_emit_str(e, "event_code", audit_class(ev->kind)->name);
        json_emit_str(e, "log_name", "audit");
        json_emit_int(e, "logged_time", (int64_t) at->logged_ms);
        json_emit_object(e, "product");
        json_emit_str(e, "name", "Gabion");
        json_emit_str(e, "vendor_name", "Gabion");
        json_emit_str(e, "version", GABION_VERSION);
        json_emit_close(e, '}');
        json_emit_array(e, "profiles");
        for (size_t i = 0; i < ARRAY_SIZE(profiles); i++)
                json_emit_str(e, NULL, profiles[i]);
        json_emit_close(e, ']');
        json_emit_int(e, "sequence", (int64_t) at->seq);
        json_emit_str(e, "tenant_uid", ev->tenant);
        json_emit_str(e, "uid", ev->id);
        json_emit_str(e, "version", "1.8.0");
        json_emit_close(e, '}');
}

static void put_process(struct json_emit *e, const struct audit_event *ev, unsigned class_uid) {
        if (class_uid != 1007)
                return;
        json_emit_object(e, "process");
        json_emit_str(e, "name", ev->object);
        json_emit_str(e, "sandbox", ev->sandbox);
        json_emit_str(e, "uid", ev->sandbox);
        if (field_find(ev, "user")) {
                json_emit_object(e, "user");
                json_emit_str(e, "name", field_str(ev, "user", ""));
                json_emit_close(e, '}');
        }
        json_emit_close(e, '}');
}

static void put_resources(struct json_emit *e, const struct audit_event *ev, unsigned class_uid) {
        bool secret = ev->kind == AUDIT_SECRET_USED || ev->kind == AUDIT_SECRET_CHANGED;

        if (class_uid != 2004 && !secret)
                return;
        json_emit_array(e, "resources");
        json_emit_object(e, NULL);
        json_emit_str(e, "name", secret ? ev->object : ev->sandbox);
        json_emit_int(e, "role_id", secret ? 1 : 3);
        json_emit_str(e, "type", secret ? "secret" : "sandbox");
        json_emit_close(e, '}');
        json_emit_close(e, ']');
}

static void put_traffic(struct json_emit *e, const struct audit_event *ev, unsigned category) {
        if (category != 4 || !field_find(ev, "bytes_in"))
                return;
        json_emit_object(e, "traffic");
        lift_int(e, ev, "bytes_in", "bytes_in");
        lift_int(e, ev, "bytes_out", "bytes_out");
        json_emit_close(e, '}');
}

/* The fields in the order of their keys. */
static void put_fields(struct json_emit *e, const struct audit_event *ev) {
        const struct audit_field *sorted[AUDIT_FIELDS];

        for (size_t i = 0; i < ev->n_fields; i++) {
                size_t k = i;

                for (; k > 0 && strcmp(sorted[k - 1]->key, ev->fields[i].key) > 0; k--)
                        sorted[k] = sorted[k - 1];
                sorted[k] = &ev->fields[i];
        }
        json_emit_object(e, "fields");
        for (size_t i = 0; i < ev->n_fields; i++)
                if (sorted[i]->is_number)
                        json_emit_int(e, sorted[i]->key, sorted[i]->number);
                else
                        json_emit_str(e, sorted[i]->key, sorted[i]->text);
        json_emit_close(e, '}');
}

static void put_items(struct json_emit *e, const struct audit_event *ev) {
        if (ev->n_items == 0)
                return;
        json_emit_array(e, "items");
        for (size_t i = 0; i < ev->n_items; i++) {
                json_emit_object(e, NULL);
                json_emit_str(e, "id", ev->items[i].id);
                json_emit_str(e, "kind", ev->items[i].kind);
                json_emit_str(e, "method", ev->items[i].method);
                json_emit_str(e, "result", ev->items[i].result);
                json_emit_close(e, '}');
        }
        json_emit_close(e, ']');
}

/* Returns where the record's own fingerprint belongs. */
static size_t put_unmapped(struct json_emit *e, const struct audit_event *ev, const uint8_t prev[HASH_BYTES]) {
        char hex[HASH_HEX];
        size_t at;

        str_hex(hex, prev, HASH_BYTES);
        json_emit_object(e, "unmapped");
        json_emit_object(e, "attestation");
        json_emit_str(e, "chain_uid", ev->tenant);
        at = e->to->len + 1; /* behind the comma */
        json_emit_object(e, "prev_event");
        json_emit_object(e, "fingerprint");
        json_emit_int(e, "algorithm_id", 3);
        json_emit_str(e, "value", hex);
        json_emit_close(e, '}');
        json_emit_close(e, '}');
        json_emit_close(e, '}');
        put_fields(e, ev);
        put_items(e, ev);
        if (ev->object[0])
                json_emit_str(e, "object", ev->object);
        json_emit_close(e, '}');
        return at;
}

static unsigned activity(const struct audit_event *ev) {
        if (ev->kind == AUDIT_NET_CONTACT && ev->decision == AUDIT_DENIED)
                return 5; /* refused */
        return audit_class(ev->kind)->activity;
}

/* Up to `is_alert` in the alphabet, and the rest: two halves of one object. */
static void put_first(struct json_emit *e, const struct audit_event *ev, const char *node) {
        static const int actions[] = { [AUDIT_NOTED] = 3, [AUDIT_ALLOWED] = 1, [AUDIT_DENIED] = 2 };
        static const int dispositions[] = { [AUDIT_NOTED] = 17, [AUDIT_ALLOWED] = 1, [AUDIT_DENIED] = 2 };
        unsigned class_uid = audit_class(ev->kind)->class_uid;

        json_emit_int(e, "action_id", actions[ev->decision]);
        json_emit_int(e, "activity_id", activity(ev));
        if (activity(ev) == 99)
                json_emit_str(e, "activity_name", audit_class(ev->kind)->name);
        put_actor(e, ev);
        put_application(e, ev, class_uid);
        json_emit_int(e, "category_uid", class_uid / 1000);
        json_emit_int(e, "class_uid", class_uid);
        put_compliance(e, ev, class_uid);
        put_connection(e, ev, class_uid / 1000);
        put_device(e, ev, node);
        json_emit_int(e, "disposition_id", ev->kind == AUDIT_SANDBOX_FROZEN ? 4 : dispositions[ev->decision]);
        put_destination(e, ev);
        lift_int(e, ev, "duration_ms", "duration");
        put_entity(e, ev, class_uid);
        put_evidences(e, ev, class_uid);
        if (class_uid == 1007)
                lift_int(e, ev, "exit_code", "exit_code");
        put_file(e, ev, class_uid);
        put_finding(e, ev, class_uid / 1000);
        if (ev->rule[0]) {
                json_emit_object(e, "firewall_rule");
                json_emit_str(e, "uid", ev->rule);
                json_emit_close(e, '}');
        }
        if (class_uid == 4002) {
                json_emit_object(e, "http_request");
                json_emit_str(e, "http_method", field_str(ev, "method", "GET"));
                json_emit_close(e, '}');
        }
        if (class_uid == 2004)
                json_emit_bool(e, "is_alert", true);
}

static size_t put_rest(struct json_emit *e, const struct audit_event *ev, const struct audit_place *at) {
        const struct audit_class *c = audit_class(ev->kind);
        bool denied = ev->decision == AUDIT_DENIED, failed = denied || ev->code[0];

        if (c->class_uid == 1003) {
                json_emit_object(e, "kernel");
                json_emit_str(e, "name", ev->object);
                json_emit_int(e, "type_id", 2);
                json_emit_close(e, '}');
        }
        put_metadata(e, ev, at);
        if (ev->policy[0]) {
                json_emit_object(e, "policy");
                json_emit_str(e, "uid", ev->policy);
                json_emit_close(e, '}');
        }
        put_process(e, ev, c->class_uid);
        if (c->class_uid == 4003) {
                json_emit_object(e, "query");
                json_emit_str(e, "hostname", ev->object);
                json_emit_close(e, '}');
                json_emit_int(e, "rcode_id", denied ? 5 : 0);
        }
        put_resources(e, ev, c->class_uid);
        json_emit_int(e, "severity_id", denied && c->severity < 3 ? 3 : c->severity);
        if (c->class_uid / 1000 == 4 || c->class_uid == 6003) {
                json_emit_object(e, "src_endpoint");
                json_emit_str(e, "uid", ev->sandbox[0] ? ev->sandbox : "host");
                json_emit_close(e, '}');
        }
        if (ev->code[0])
                json_emit_str(e, "status_code", ev->code);
        json_emit_int(e, "status_id", failed && c->class_uid / 1000 != 2 ? 2 : 1);
        json_emit_int(e, "time", (int64_t) ev->time_ms);
        put_traffic(e, ev, c->class_uid / 1000);
        json_emit_int(e, "type_uid", c->class_uid * 100 + activity(ev));
        return put_unmapped(e, ev, at->prev);
}

int audit_record_make(const struct audit_event *ev, const struct audit_place *at, struct buf *to,
                      uint8_t ret_hash[HASH_BYTES], struct err *err) {
        struct json_emit e = { .to = to };
        char print[PRINT_LEN + 1], hex[HASH_HEX];
        size_t start = to->len, where;
        struct hash_part all;

        json_emit_object(&e, NULL);
        put_first(&e, ev, at->node);
        where = put_rest(&e, ev, at);
        json_emit_close(&e, '}');
        if (!to->bad) {
                all = (struct hash_part){ to->p + start, to->len - start };
                hash_parts(ret_hash, &all, 1);
                str_hex(hex, ret_hash, HASH_BYTES);
                (void) snprintf(print, sizeof(print), PRINT_OPEN "%s" PRINT_CLOSE, hex);
                buf_add(to, print, PRINT_LEN); /* room at the end; then everything behind its place moves up */
        }
        if (to->bad || to->len - start > AUDIT_LINE_MAX)
                return err_set(err, -EMSGSIZE, ERR_LIMIT, "audit event: the record is too long");
        memmove(to->p + where + PRINT_LEN, to->p + where, to->len - PRINT_LEN - where);
        memcpy(to->p + where, print, PRINT_LEN);
        return 0;
}

static int wrong(struct err *err, const char *what) {
        return err_set(err, -EBADMSG, ERR_INVALID, "%s", what);
}

/* The number behind "sequence": in text that ends at end. */
static uint64_t sequence(const char *at, const char *end) {
        uint64_t v = 0;

        for (; at < end && *at >= '0' && *at <= '9' && v < UINT64_MAX / 16; at++)
                v = v * 10 + (uint64_t) (*at - '0');
        return v;
}

int audit_record_read(const char *line, size_t n, uint64_t *ret_seq, uint8_t ret_prev[HASH_BYTES],
                      uint8_t ret_hash[HASH_BYTES], struct err *err) {
        const char *end = line + n, *print = memmem(line, n, PRINT_OPEN, sizeof(PRINT_OPEN) - 1), *rest, *seq_at;
        uint8_t said[HASH_BYTES];

        if (n > AUDIT_LINE_MAX || !print || (size_t) (end - print) < PRINT_LEN + sizeof(PREV_OPEN) - 1 + 64)
                return wrong(err, "it is not a whole record");
        rest = print + PRINT_LEN;
        seq_at = memmem(line, n, SEQ_OPEN, sizeof(SEQ_OPEN) - 1);
        if (memcmp(rest - (sizeof(PRINT_CLOSE) - 1), PRINT_CLOSE, sizeof(PRINT_CLOSE) - 1) != 0 ||
            str_unhex(said, HASH_BYTES, print + sizeof(PRINT_OPEN) - 1) < 0 ||
            memcmp(rest, PREV_OPEN, sizeof(PREV_OPEN) - 1) != 0 ||
            str_unhex(ret_prev, HASH_BYTES, rest + sizeof(PREV_OPEN) - 1) < 0 || !seq_at)
                return wrong(err, "it is not a whole record");
        hash_parts(ret_hash,
                   (const struct hash_part[]){ { line, (size_t) (print - line) }, { rest, (size_t) (end - rest) } }, 2);
        *ret_seq = sequence(seq_at + sizeof(SEQ_OPEN) - 1, end);
        return memcmp(said, ret_hash, HASH_BYTES) == 0 ? 0 : wrong(err, "its content was changed: the hash is another");
}

int audit_record_check(const char *line, size_t n, uint64_t seq, const uint8_t prev[HASH_BYTES],
                       uint8_t ret_hash[HASH_BYTES], struct err *err) {
        uint8_t before[HASH_BYTES];
        uint64_t number;
        int r = audit_record_read(line, n, &number, before, ret_hash, err);

        if (r < 0)
                return r;
        if (number != seq)
                return err_set(err, -EBADMSG, ERR_INVALID, "record %" PRIu64 " stands in its place", number);
        if (memcmp(before, prev, HASH_BYTES) != 0)
                return wrong(err, "it does not follow the record before: the hash of that one is another");
        return 0;
}
