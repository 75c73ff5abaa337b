/* admin_tenant.c - tenants: quotas, ceilings, on and off. For operators. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/compose.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/request.h"
#include "json/json.h"
#include "policy/policy.h"

struct change {
        struct store_tenant t;
        char *ceiling; /* canonical; NULL: the operator's */
        bool has_ceiling;
};

/* --- out --- */

static void set_limit(struct json *o, const char *key, uint64_t v) {
        if (v)
                json_set_int(o, key, (int64_t) v);
        else
                json_set_str(o, key, NULL);
}

static struct json *view(struct daemon *d, const struct store_tenant *t) {
        struct json *o = json_new_object(), *quota = json_new_object(), *ceiling = NULL;
        char time[CLOCK_TEXT];
        AUTO_FREE char *text = NULL;
        struct err err;

        clock_rfc3339_at(time, t->created_ms);
        json_set_str(o, "id", t->id);
        json_set_str(o, "name", t->name);
        json_set_bool(o, "disabled", t->disabled);
        json_set_str(o, "createdAt", time);
        set_limit(quota, "sandboxes", t->quota.sandboxes);
        set_limit(quota, "creates_per_s", t->quota.creates_per_s);
        if (t->quota.cpu_milli)
                json_set_real(quota, "cpu", (double) t->quota.cpu_milli / 1000);
        else
                json_set_str(quota, "cpu", NULL);
        set_limit(quota, "memory_bytes", t->quota.memory_bytes);
        set_limit(quota, "disk_bytes", t->quota.disk_bytes);
        json_set(o, "quota", quota);
        if (store_tenant_ceiling(d->store, t->id, &text, &err) == 0 && text &&
            json_parse("ceiling", text, strlen(text), &ceiling, &err) == 0)
                json_set(o, "ceiling", ceiling);
        else
                json_set_str(o, "ceiling", NULL);
        return o;
}

struct listing {
        struct daemon *d;
        struct json *list;
};

static int on_tenant(void *arg, const struct store_tenant *t) {
        struct listing *l = arg;

        json_add(l->list, view(l->d, t));
        return 0;
}

void admin_tenants(struct request *q) {
        struct listing l = { .d = q->d, .list = json_new_array() };
        struct err err = { 0 };

        if (store_tenant_each(q->d->store, on_tenant, &l, &err) < 0) {
                (void) json_free(l.list);
                reply_err(q, &err);
        } else {
                reply_json(q, 200, l.list);
        }
}

/* --- in --- */

static int decode_cpus(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct err why = { 0 };
        char text[32];

        if (json_is_null(value)) {
                *(uint32_t *) at = 0;
                return 0;
        }
        if (field_text(value, text, sizeof(text)) < 0 || policy_parse_cpus(ctx->key, text, at, &why) < 0)
                return field_error(ctx, err, "%s", why.msg[0] ? why.msg : "must be a number of CPUs, or null");
        return 0;
}

static int decode_limit(const struct field_ctx *ctx, const struct json *value, uint64_t max, uint64_t *ret,
                        struct err *err) {
        char text[32];

        *ret = 0;
        if (json_is_null(value))
                return 0;
        if (json_str(value) || field_text(value, text, sizeof(text)) < 0 || str_to_u64(text, max, ret) < 0 || *ret == 0)
                return field_error(ctx, err, "must be a number between 1 and %llu, or null", (unsigned long long) max);
        return 0;
}

static int decode_count(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        uint64_t v;
        int r = decode_limit(ctx, value, UINT32_MAX, &v, err);

        *(uint32_t *) at = (uint32_t) v;
        return r;
}

static int decode_bytes(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        return decode_limit(ctx, value, INT64_MAX, at, err);
}

static int decode_quota(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
#define AT(member) offsetof(struct store_quota, member)
        static const struct field rows[] = {
                { .key = "sandboxes", .type = FIELD_ANY, .offset = AT(sandboxes), .decode = decode_count },
                { .key = "creates_per_s", .type = FIELD_ANY, .offset = AT(creates_per_s), .decode = decode_count },
                { .key = "cpu", .type = FIELD_ANY, .offset = AT(cpu_milli), .decode = decode_cpus },
                { .key = "memory_bytes", .type = FIELD_ANY, .offset = AT(memory_bytes), .decode = decode_bytes },
                { .key = "disk_bytes", .type = FIELD_ANY, .offset = AT(disk_bytes), .decode = decode_bytes },
        };
#undef AT

        return field_decode(ctx, value, rows, ARRAY_SIZE(rows), at, err);
}

static int decode_ceiling(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct change *c = at;
        struct err why = { 0 };

        c->has_ceiling = true;
        if (json_is_null(value))
                return 0;
        if (compose_check_ceiling(value, &c->ceiling, &why) < 0)
                return field_error(ctx, err, "%s", why.msg);
        return 0;
}

static bool is_name(const char *s) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_");

        return n > 0 && !s[n] && s[0] != '-' && s[0] != '_';
}

static int decode(const struct json *doc, struct change *c, struct err *err) {
        static const struct field_ctx ctx = { .what = "request" };
#define AT(member) offsetof(struct change, member)
        static const struct field rows[] = {
                { .key = "name", .type = FIELD_STR, .offset = AT(t.name), .size = STORE_NAME },
                { .key = "disabled", .type = FIELD_BOOL, .offset = AT(t.disabled) },
                { .key = "quota", .type = FIELD_OBJECT, .offset = AT(t.quota), .decode = decode_quota },
                { .key = "ceiling", .type = FIELD_ANY, .decode = decode_ceiling },
        };
#undef AT
        int r = field_decode(&ctx, doc, rows, ARRAY_SIZE(rows), c, err);

        if (r == 0 && (!is_name(c->t.name) || strlen(c->t.name) == ID_LEN))
                r = field_error(&ctx, err,
                                "name: must have letters a-z, digits, '-' and '_', and not %d characters like an id",
                                ID_LEN);
        return r;
}

static struct json *change_json(const struct request *q, const struct change *c) {
        struct json *data = json_new_object();

        json_set_str(data, "name", c->t.name);
        json_set_bool(data, "disabled", c->t.disabled);
        json_set_int(data, "sandboxes", c->t.quota.sandboxes);
        json_set_int(data, "creates_per_s", c->t.quota.creates_per_s);
        if (c->has_ceiling)
                json_set_bool(data, "ceiling_changed", true);
        json_set_str(data, "by", q->auth.key.id);
        return data;
}

void admin_tenant_add(struct request *q) {
        struct change c = { .t.quota = q->d->config.quota };
        struct json *doc = request_object(q);
        struct err err = { 0 };
        int r;

        if (!doc)
                return;
        r = decode(doc, &c, &err);
        if (r == 0 && id_new(c.t.id) < 0)
                r = err_set(&err, -EIO, ERR_INTERNAL, "no random numbers");
        c.t.created_ms = clock_real_ms();
        if (r == 0)
                r = store_tenant_add(q->d->store, &c.t, &err);
        if (r == 0 && c.has_ceiling)
                r = store_tenant_set_ceiling(q->d->store, c.t.id, c.ceiling, &err);
        if (r == 0)
                r = event_emit(q->d, c.t.id, "", "tenant.created", change_json(q, &c), &err);
        free(c.ceiling);
        if (r < 0)
                reply_err(q, &err);
        else
                reply_json(q, 201, view(q->d, &c.t));
}

void admin_tenant_get(struct request *q) {
        struct store_tenant t;
        struct err err = { 0 };

        if (store_tenant_get(q->d->store, q->args[0], &t, &err) < 0)
                reply_err(q, &err);
        else
                reply_json(q, 200, view(q->d, &t));
}

/* What the document does not name stays. */
void admin_tenant_update(struct request *q) {
        struct json *doc = request_object(q);
        struct change c = { 0 };
        struct err err = { 0 };
        bool operators;
        int r;

        if (!doc)
                return;
        r = store_tenant_get(q->d->store, q->args[0], &c.t, &err);
        operators = r == 0 && str_eq(c.t.name, DAEMON_OPERATORS);
        if (r == 0)
                r = decode(doc, &c, &err);
        if (r == 0 && operators && (c.t.disabled || !str_eq(c.t.name, DAEMON_OPERATORS)))
                r = err_set(&err, -EPERM, ERR_DENIED, "tenant %s is the operators' own: it keeps its name and stays on",
                            DAEMON_OPERATORS);
        if (r == 0) /* before the effect: it changes what others may do */
                r = event_emit(q->d, c.t.id, "", "tenant.changed", change_json(q, &c), &err);
        if (r == 0)
                r = store_tenant_update(q->d->store, &c.t, &err);
        if (r == 0 && c.has_ceiling)
                r = store_tenant_set_ceiling(q->d->store, c.t.id, c.ceiling, &err);
        free(c.ceiling);
        if (r < 0)
                reply_err(q, &err);
        else
                reply_json(q, 200, view(q->d, &c.t));
}
