/* event.c - events as values and as messages. What may be in one is decided here; how it looks in the log, in record.c.
 */
#include <errno.h>
#include <string.h>

#include "audit/kinds.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "base/str.h"
#include "base/wr.h"

static const struct audit_class kinds[AUDIT_KINDS] = {
        [AUDIT_LOG_STARTED] = { "log.started", 1008, 6, 1 },
        [AUDIT_LOG_KEY_CHANGED] = { "log.key_changed", 1008, 99, 2 },
        [AUDIT_LOG_DROPPED] = { "log.dropped", 1008, 2, 2 },
        [AUDIT_LOG_CUT] = { "log.cut", 1008, 99, 3 },
        [AUDIT_SANDBOX_CREATED] = { "sandbox.created", 6002, 3, 1 },
        [AUDIT_SANDBOX_ENDED] = { "sandbox.ended", 6002, 4, 1 },
        [AUDIT_SANDBOX_REMOVED] = { "sandbox.removed", 6002, 2, 1 },
        [AUDIT_SANDBOX_FROZEN] = { "sandbox.frozen", 3004, 12, 2 },
        [AUDIT_SANDBOX_RESUMED] = { "sandbox.resumed", 3004, 13, 1 },
        [AUDIT_EXEC_STARTED] = { "exec.started", 1007, 1, 1 },
        [AUDIT_EXEC_ENDED] = { "exec.ended", 1007, 2, 1 },
        [AUDIT_LIMIT_REACHED] = { "limit.reached", 1007, 99, 2 },
        [AUDIT_CALL_REFUSED] = { "call.refused", 1003, 4, 3 },
        [AUDIT_NET_CONTACT] = { "net.contact", 4001, 1, 1 },
        [AUDIT_NET_NAME] = { "net.name", 4003, 2, 1 },
        [AUDIT_NET_REQUEST] = { "net.request", 4002, 99, 1 },
        [AUDIT_FILE_READ] = { "file.read", 1001, 2, 1 },
        [AUDIT_FILE_WRITTEN] = { "file.written", 1001, 3, 1 },
        [AUDIT_SECRET_USED] = { "secret.used", 6003, 2, 1 },
        [AUDIT_SECRET_CHANGED] = { "secret.changed", 6003, 3, 2 },
        [AUDIT_PACKAGE_INSTALLED] = { "package.installed", 6002, 1, 1 },
        [AUDIT_POLICY_CHANGED] = { "policy.changed", 3004, 3, 2 },
        [AUDIT_ADMIN] = { "admin", 6003, 99, 1 },
        [AUDIT_EVIDENCE] = { "evidence", 2003, 1, 1 },
        [AUDIT_DRIFT] = { "drift", 2004, 1, 4 },
        [AUDIT_ALERT] = { "alert", 2004, 1, 3 },
};

const struct audit_class *audit_class(enum audit_kind k) {
        return &kinds[k];
}

const char *audit_kind_name(enum audit_kind k) {
        return k < AUDIT_KINDS ? kinds[k].name : "?";
}

enum audit_kind audit_kind_find(const char *name) {
        for (int k = 0; k < AUDIT_KINDS; k++)
                if (str_eq(kinds[k].name, name))
                        return (enum audit_kind) k;
        return AUDIT_KINDS;
}

/* As much of src as fits; a cut inside a UTF-8 sequence is repaired when it is written. */
static void copy(char *dst, size_t cap, const char *src) {
        size_t n = strlen(src);

        n = n < cap ? n : cap - 1;
        memcpy(dst, src, n);
        dst[n] = '\0';
}

void audit_event_init(struct audit_event *ev, enum audit_kind kind, const char *tenant, const char *sandbox) {
        memset(ev, 0, offsetof(struct audit_event, fields));
        ev->n_fields = ev->n_items = 0;
        ev->bad = false;
        ev->kind = kind;
        ev->time_ms = clock_real_ms();
        memcpy(ev->id, "evt_", 4);
        ev->bad |= id_new(ev->id + 4) < 0;
        copy(ev->tenant, sizeof(ev->tenant), tenant);
        copy(ev->sandbox, sizeof(ev->sandbox), sandbox);
}

void audit_object(struct audit_event *ev, const char *name) {
        copy(ev->object, sizeof(ev->object), name);
}

static struct audit_field *field_new(struct audit_event *ev, const char *key) {
        struct audit_field *f = &ev->fields[ev->n_fields];

        if (ev->n_fields == AUDIT_FIELDS || str_copy(f->key, sizeof(f->key), key) < 0) {
                ev->bad = true;
                return NULL;
        }
        f->text[0] = '\0';
        f->number = 0;
        ev->n_fields++;
        return f;
}

void audit_text(struct audit_event *ev, const char *key, const char *value) {
        struct audit_field *f = field_new(ev, key);

        if (f) {
                f->is_number = false;
                copy(f->text, sizeof(f->text), value);
        }
}

void audit_number(struct audit_event *ev, const char *key, int64_t value) {
        struct audit_field *f = field_new(ev, key);

        if (f) {
                f->is_number = true;
                f->number = value;
        }
}

void audit_item(struct audit_event *ev, const char *kind, const char *id, const char *method, bool ok) {
        struct audit_item *i = &ev->items[ev->n_items];

        if (ev->n_items == AUDIT_ITEMS) {
                ev->bad = true;
                return;
        }
        copy(i->kind, sizeof(i->kind), kind);
        copy(i->id, sizeof(i->id), id);
        copy(i->method, sizeof(i->method), method);
        copy(i->result, sizeof(i->result), ok ? "removed" : "failed");
        ev->n_items++;
}

/* One to cap - 1 characters of the set. */
static bool made_of(const char *s, const char *set) {
        return *s && s[strspn(s, set)] == '\0';
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

bool audit_tenant_ok(const char *tenant) {
        return strlen(tenant) < AUDIT_NAME && made_of(tenant, LOWER DIGITS "-_") && *tenant != '-';
}

int audit_event_check(const struct audit_event *ev, struct err *err) {
        const char *wrong = NULL;

        if (ev->bad)
                wrong = "too much in it";
        else if (ev->kind < 0 || ev->kind >= AUDIT_KINDS || ev->decision < 0 || ev->decision > AUDIT_DENIED)
                wrong = "unknown kind or decision";
        else if (!audit_tenant_ok(ev->tenant))
                wrong = "tenant: lower-case letters, digits, '-' and '_'";
        else if (ev->id[0] && (!str_has_prefix(ev->id, "evt_") || !made_of(ev->id + 4, LOWER DIGITS)))
                wrong = "id";
        else if (ev->sandbox[0] && !made_of(ev->sandbox, LOWER DIGITS))
                wrong = "sandbox";
        else if (ev->code[0] && !made_of(ev->code, LOWER DIGITS "._"))
                wrong = "code";
        else if (ev->policy[0] && !(str_has_prefix(ev->policy, "sha256:") && made_of(ev->policy + 7, DIGITS "abcdef")))
                wrong = "policy";
        else if (ev->time_ms >> 53)
                wrong = "time";
        for (size_t i = 0; !wrong && i < ev->n_fields; i++) {
                int64_t v = ev->fields[i].number;

                if (!made_of(ev->fields[i].key, LOWER "_") || v > (1ll << 53) || v < -(1ll << 53))
                        wrong = "field";
                for (size_t k = 0; k < i; k++)
                        if (str_eq(ev->fields[i].key, ev->fields[k].key))
                                wrong = "field given twice";
        }
        return wrong ? err_set(err, -EINVAL, ERR_INVALID, "audit event: %s", wrong) : 0;
}

/* The strings of an event in the order of the message. */
#define STRINGS(X) X(id) X(tenant) X(sandbox) X(actor) X(object) X(code) X(rule) X(policy)

void audit_event_put(const struct audit_event *ev, struct wr *w) {
        wr_u8(w, (uint8_t) ev->kind);
        wr_u8(w, (uint8_t) ev->decision);
        wr_u64(w, ev->time_ms);
        wr_u16(w, ev->port);
#define PUT(member) wr_str(w, ev->member);
        STRINGS(PUT)
#undef PUT
        wr_u8(w, (uint8_t) ev->n_fields);
        for (size_t i = 0; i < ev->n_fields; i++) {
                wr_str(w, ev->fields[i].key);
                wr_u8(w, ev->fields[i].is_number);
                if (ev->fields[i].is_number)
                        wr_u64(w, (uint64_t) ev->fields[i].number);
                else
                        wr_str(w, ev->fields[i].text);
        }
        wr_u8(w, (uint8_t) ev->n_items);
        for (size_t i = 0; i < ev->n_items; i++) {
                wr_str(w, ev->items[i].kind);
                wr_str(w, ev->items[i].id);
                wr_str(w, ev->items[i].method);
                wr_str(w, ev->items[i].result);
        }
        w->bad |= ev->bad;
}

static void get_field(struct rd *r, struct audit_field *f) {
        unsigned form;

        rd_str(r, f->key, sizeof(f->key));
        form = rd_u8(r);
        f->is_number = form == 1;
        f->text[0] = '\0';
        f->number = 0;
        if (form == 1)
                f->number = (int64_t) rd_u64(r);
        else
                rd_str(r, f->text, sizeof(f->text));
        r->bad |= form > 1;
}

int audit_event_get(struct rd *r, struct audit_event *ret, struct err *err) {
        *err = (struct err){ 0 };
        ret->bad = false;
        ret->kind = (enum audit_kind) rd_u8(r);
        ret->decision = (enum audit_decision) rd_u8(r);
        ret->time_ms = rd_u64(r);
        ret->port = rd_u16(r);
#define GET(member) rd_str(r, ret->member, sizeof(ret->member));
        STRINGS(GET)
#undef GET
        ret->n_fields = rd_u8(r);
        if (ret->n_fields > AUDIT_FIELDS)
                return err_set(err, -EBADMSG, ERR_PEER, "audit event: too many fields");
        for (size_t i = 0; i < ret->n_fields; i++)
                get_field(r, &ret->fields[i]);
        ret->n_items = rd_u8(r);
        if (ret->n_items > AUDIT_ITEMS)
                return err_set(err, -EBADMSG, ERR_PEER, "audit event: too many items");
        for (size_t i = 0; i < ret->n_items; i++) {
                rd_str(r, ret->items[i].kind, sizeof(ret->items[i].kind));
                rd_str(r, ret->items[i].id, sizeof(ret->items[i].id));
                rd_str(r, ret->items[i].method, sizeof(ret->items[i].method));
                rd_str(r, ret->items[i].result, sizeof(ret->items[i].result));
        }
        if (r->bad)
                return err_set(err, -EBADMSG, ERR_PEER, "audit event: malformed");
        if (audit_event_check(ret, err) < 0) {
                err->kind = ERR_PEER;
                err->code = -EBADMSG;
        }
        return err->code;
}
