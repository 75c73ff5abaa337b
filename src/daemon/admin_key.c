/* admin_key.c - API keys with roles, verbs, templates and an end. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/auth.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/keys.h"
#include "daemon/request.h"
#include "daemon/template.h"
#include "json/json.h"

static int list_add(const struct field_ctx *ctx, char list[STORE_LIST], const char *name, struct err *err) {
        size_t n = strlen(list);
        int k = snprintf(list + n, STORE_LIST - n, "%s%s", n ? "," : "", name);

        return k < 0 || (size_t) k >= STORE_LIST - n ? field_error(ctx, err, "the list is too long") : 0;
}

static int decode_verb(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct store_key *k = at;
        const char *text = json_str(value);
        struct err why = { 0 };

        if (!text || !*text || strchr(text, ','))
                return field_error(ctx, err, "must be the name of a verb");
        if (verb_check_list(text, &why) < 0)
                return field_error(ctx, err, "%s", why.msg);
        return list_add(ctx, k->verbs, text, err);
}

static int decode_template(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const struct template *t = json_str(value) ? template_find(json_str(value)) : NULL;
        struct store_key *k = at;

        if (!t)
                return field_error(ctx, err, "there is no such template");
        return list_add(ctx, k->templates, t->id, err);
}

static int decode_end(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        uint64_t *ms = at;

        if (!json_str(value) || clock_parse(json_str(value), ms) < 0 || *ms <= clock_real_ms())
                return field_error(ctx, err, "must be a time to come, like 2027-01-31T12:00:00Z");
        return 0;
}

static void add(struct request *q, const char *tenant) {
        static const struct field_ctx ctx = { .what = "request" };
        static const char *const roles[] = { "admin", "developer", "auditor", NULL };
#define AT(member) offsetof(struct store_key, member)
        static const struct field rows[] = {
                { .key = "name", .type = FIELD_STR, .offset = AT(name), .size = STORE_NAME, .required = true },
                { .key = "role", .type = FIELD_ENUM, .offset = AT(role), .names = roles },
                { .key = "verbs", .type = FIELD_LIST, .size = VERBS, .decode = decode_verb },
                { .key = "templates", .type = FIELD_LIST, .size = 16, .decode = decode_template },
                { .key = "expiresAt", .type = FIELD_ANY, .offset = AT(expires_ms), .decode = decode_end },
        };
#undef AT
        struct store_key k = { .role = STORE_DEVELOPER };
        struct json *doc = request_object(q), *o = NULL;
        struct err err = { 0 };

        if (!doc)
                return;
        if (field_decode(&ctx, doc, rows, ARRAY_SIZE(rows), &k, &err) < 0 ||
            keys_add(q, tenant, &k, false, &o, &err) < 0)
                reply_err(q, &err);
        else
                reply_json(q, 201, o);
}

static void list(struct request *q, const char *tenant) {
        struct json *keys = NULL;
        struct err err = { 0 };

        if (keys_list(q, tenant, false, &keys, &err) < 0)
                reply_err(q, &err);
        else
                reply_json(q, 200, keys);
}

static void end_key(struct request *q, const char *tenant, const char *id) {
        struct err err = { 0 };

        if (keys_revoke(q, tenant, id, &err) < 0)
                reply_err(q, &err);
        else
                reply_empty(q, 204);
}

void admin_keys(struct request *q) {
        list(q, q->auth.tenant.id);
}

void admin_key_add(struct request *q) {
        add(q, q->auth.tenant.id);
}

void admin_key_revoke(struct request *q) {
        end_key(q, q->auth.tenant.id, q->args[0]);
}

/* The tenant that the path names; false: answered. */
static bool find(struct request *q, struct store_tenant *ret) {
        struct err err = { 0 };

        if (store_tenant_get(q->d->store, q->args[0], ret, &err) == 0)
                return true;
        reply_err(q, &err);
        return false;
}

void admin_tenant_keys(struct request *q) {
        struct store_tenant t;

        if (find(q, &t))
                list(q, t.id);
}

void admin_tenant_key_add(struct request *q) {
        struct store_tenant t;

        if (find(q, &t))
                add(q, t.id);
}

void admin_tenant_key_revoke(struct request *q) {
        struct store_tenant t;

        if (find(q, &t))
                end_key(q, t.id, q->args[1]);
}
