/* control_team.c - templates, teams and API keys, as E2B's tools ask for them. A team is a tenant. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/keys.h"
#include "daemon/request.h"
#include "daemon/template.h"
#include "json/json.h"

enum { MIB = 1024 * 1024 };

static struct json *names_of(const struct template *t) {
        struct json *a = json_new_array();

        for (size_t i = 0; i < ARRAY_SIZE(t->names) && t->names[i]; i++)
                json_add_str(a, t->names[i]);
        return a;
}

static struct json *view(const struct daemon *d, const struct template *t) {
        const struct policy_limits *l = &d->config.policy.limits;
        struct json *o = json_new_object();
        char time[CLOCK_TEXT];

        clock_rfc3339_at(time, d->started_ms);
        json_set_str(o, "templateID", t->id);
        json_set_str(o, "buildID", "00000000-0000-0000-0000-000000000000");
        json_set_str(o, "buildStatus", "ready");
        json_set_int(o, "cpuCount", (l->cpu_milli + 999) / 1000);
        json_set_int(o, "memoryMB", (int64_t) (l->memory_bytes / MIB));
        json_set_int(o, "diskSizeMB", (int64_t) (l->disk_bytes / MIB));
        json_set_bool(o, "public", true);
        json_set(o, "aliases", names_of(t));
        json_set(o, "names", names_of(t));
        json_set_str(o, "createdAt", time);
        json_set_str(o, "updatedAt", time);
        json_set_str(o, "createdBy", NULL);
        json_set_str(o, "lastSpawnedAt", NULL);
        json_set_int(o, "spawnCount", 0);
        json_set_int(o, "buildCount", 1);
        json_set_str(o, "envdVersion", DAEMON_ENVD_VERSION);
        return o;
}

void control_templates(struct request *q) {
        struct json *list = json_new_array();
        const struct template *t;

        for (size_t i = 0; (t = template_at(i)); i++)
                if (auth_may_template(&q->auth, t->id))
                        json_add(list, view(q->d, t));
        reply_json(q, 200, list);
}

void control_alias(struct request *q) {
        const struct template *t = template_find(q->args[0]);
        struct json *o;

        if (!t || !auth_may_template(&q->auth, t->id)) {
                reply_error(q, 404, "not_found", "there is no template '%.64s'", q->args[0]);
                return;
        }
        o = json_new_object();
        json_set_str(o, "templateID", t->id);
        json_set_bool(o, "public", true);
        reply_json(q, 200, o);
}

void control_teams(struct request *q) {
        struct json *list = json_new_array(), *o = json_new_object();

        json_set_str(o, "teamID", q->auth.tenant.id);
        json_set_str(o, "name", q->auth.tenant.name);
        json_set_str(o, "apiKey", ""); /* of keys only hashes are kept */
        json_set_bool(o, "isDefault", true);
        json_add(list, o);
        reply_json(q, 200, list);
}

void control_keys(struct request *q) {
        struct json *list = NULL;
        struct err err = { 0 };

        if (keys_list(q, q->auth.tenant.id, true, &list, &err) < 0)
                reply_err(q, &err);
        else
                reply_json(q, 200, list);
}

/* E2B's call knows names only: the new key is a developer's, without an end. */
void control_key_add(struct request *q) {
        static const struct field_ctx ctx = { .what = "request" };
        static const struct field rows[] = {
                { .key = "name",
                  .type = FIELD_STR,
                  .offset = offsetof(struct store_key, name),
                  .size = STORE_NAME,
                  .required = true },
        };
        struct store_key k = { .role = STORE_DEVELOPER };
        struct json *doc = request_object(q), *o = NULL;
        struct err err = { 0 };

        if (!doc)
                return;
        if (field_decode(&ctx, doc, rows, ARRAY_SIZE(rows), &k, &err) < 0 ||
            keys_add(q, q->auth.tenant.id, &k, true, &o, &err) < 0)
                reply_err(q, &err);
        else
                reply_json(q, 201, o);
}

void control_key_revoke(struct request *q) {
        struct err err = { 0 };

        if (keys_revoke(q, q->auth.tenant.id, q->args[0], &err) < 0)
                reply_err(q, &err);
        else
                reply_empty(q, 204);
}
