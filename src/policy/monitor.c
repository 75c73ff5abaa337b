/* monitor.c - `monitor` and `filesystem.watch`. Names only: what a rule looks at is in src/monitor. */
#include "policy/monitor.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "policy/mount.h"
#include "policy/policy.h"

enum { LEAST_INTERVAL_MS = 100, MOST_INTERVAL_MS = 60000, MOST_WITHIN_MS = 3600000, UNIT = 32 };

static const char *const drift_names[] = { "warn", "freeze", "kill", NULL };
static const char *const action_names[] = { "log", "freeze", "kill", NULL };

const char *policy_action_name(enum policy_action a) {
        return a <= POLICY_KILL ? action_names[a] : "?";
}

void policy_monitor_default(struct policy *p) {
        p->n_watch = 0;
        p->monitor.on_drift = POLICY_FREEZE;
        p->monitor.interval_ms = 1000;
        p->monitor.refused_calls.on = p->monitor.programs.on = p->monitor.hosts.on = false;
        p->monitor.writes.on = p->monitor.resources.on = false;
        p->monitor.programs.expect.n = p->monitor.hosts.expect.n = 0;
}

/* --- decoding; each row gets the struct of its rule --- */

static int decode_ms(const struct field_ctx *ctx, const struct json *value, uint64_t least, uint64_t most,
                     uint64_t *ret, struct err *err) {
        char text[UNIT];
        struct err why;

        if (field_text(value, text, sizeof(text)) < 0 ||
            policy_parse_duration_ms(ctx->key, text, least, most, ret, &why) < 0)
                return field_error(ctx, err, "a duration from %" PRIu64 "ms to %" PRIu64 "s is expected", least,
                                   most / 1000);
        return 0;
}

static int decode_interval(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        return decode_ms(ctx, value, LEAST_INTERVAL_MS, MOST_INTERVAL_MS, at, err);
}

static int decode_within(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        return decode_ms(ctx, value, 1000, MOST_WITHIN_MS, at, err);
}

static int decode_memory(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        char text[UNIT];
        struct err why;

        if (field_text(value, text, sizeof(text)) < 0 ||
            policy_parse_size(ctx->key, text, 1 << 20, UINT64_MAX >> 12, at, &why) < 0)
                return field_error(ctx, err, "a size from 1M is expected");
        return 0;
}

static int decode_name(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct policy_names *n =
                &((struct policy_rule_names *) at)->expect; /* elements of a list get what the list is in */
        char *dst = n->names[n->n];

        if (field_text(value, dst, POLICY_EXPECTED_NAME) < 0 || !dst[0] || dst[strcspn(dst, "/ \t\n")])
                return field_error(ctx, err, "a name of 1 to %d characters without '/' and blanks is expected",
                                   POLICY_EXPECTED_NAME - 1);
        n->n++;
        return 0;
}

#define ACTION(rule)                                                                                                   \
        { .key = "action", .type = FIELD_ENUM, .offset = offsetof(rule, action), .names = action_names }

static int decode_calls(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { .key = "over",
                  .type = FIELD_U32,
                  .offset = offsetof(struct policy_rule_calls, over),
                  .size = 100000,
                  .min = 1 },
                { .key = "within",
                  .type = FIELD_TEXT,
                  .offset = offsetof(struct policy_rule_calls, within_ms),
                  .decode = decode_within },
                ACTION(struct policy_rule_calls),
        };
        struct policy_rule_calls *r = at;

        *r = (struct policy_rule_calls){ .on = true, .over = 20, .within_ms = 10000 };
        return field_decode(ctx, value, fields, ARRAY_SIZE(fields), r, err);
}

static int decode_names(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { .key = "expect",
                  .type = FIELD_LIST,
                  .size = POLICY_EXPECTED,
                  .required = true,
                  .decode = decode_name },
                ACTION(struct policy_rule_names),
        };
        struct policy_rule_names *r = at;

        r->on = true;
        r->action = POLICY_LOG;
        r->expect.n = 0;
        return field_decode(ctx, value, fields, ARRAY_SIZE(fields), r, err);
}

static int decode_writes(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = { ACTION(struct policy_rule_writes) };
        struct policy_rule_writes *r = at;

        *r = (struct policy_rule_writes){ .on = true };
        return field_decode(ctx, value, fields, ARRAY_SIZE(fields), r, err);
}

static int decode_resources(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { .key = "memory",
                  .type = FIELD_TEXT,
                  .offset = offsetof(struct policy_rule_resources, memory_bytes),
                  .decode = decode_memory },
                { .key = "pids",
                  .type = FIELD_U32,
                  .offset = offsetof(struct policy_rule_resources, pids),
                  .size = 1 << 22,
                  .min = 1 },
                ACTION(struct policy_rule_resources),
        };
        struct policy_rule_resources *r = at;
        int e;

        *r = (struct policy_rule_resources){ .on = true };
        e = field_decode(ctx, value, fields, ARRAY_SIZE(fields), r, err);
        if (e == 0 && r->memory_bytes == 0 && r->pids == 0)
                e = field_error(ctx, err, "memory or pids is expected");
        return e;
}

#define AT(member) offsetof(struct policy_monitor, member)

int policy_monitor_decode(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { .key = "on_drift", .type = FIELD_ENUM, .offset = AT(on_drift), .names = drift_names },
                { .key = "interval", .type = FIELD_TEXT, .offset = AT(interval_ms), .decode = decode_interval },
                { .key = "refused_calls", .type = FIELD_OBJECT, .offset = AT(refused_calls), .decode = decode_calls },
                { .key = "programs", .type = FIELD_OBJECT, .offset = AT(programs), .decode = decode_names },
                { .key = "hosts", .type = FIELD_OBJECT, .offset = AT(hosts), .decode = decode_names },
                { .key = "writes", .type = FIELD_OBJECT, .offset = AT(writes), .decode = decode_writes },
                { .key = "resources", .type = FIELD_OBJECT, .offset = AT(resources), .decode = decode_resources },
        };

        return field_decode(ctx, value, fields, ARRAY_SIZE(fields), at, err);
}
#undef AT

int policy_watch_decode(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct policy *p = at;
        char *dst = p->watch[p->n_watch]; /* the table of the list bounds their number */

        if (field_text(value, dst, POLICY_PATH) < 0 || dst[0] != '/' || !policy_path_is_normal(dst))
                return field_error(ctx, err,
                                   "an absolute path inside the sandbox without '.', '..' and '//' is expected");
        p->n_watch++;
        return 0;
}

int policy_monitor_check(const struct policy *p, struct err *err) {
        const struct policy_monitor *m = &p->monitor;

        if (p->n_watch > POLICY_WATCHES || m->on_drift > POLICY_KILL || m->interval_ms < LEAST_INTERVAL_MS ||
            m->interval_ms > MOST_INTERVAL_MS)
                return err_set(err, -EINVAL, ERR_INVALID, "monitor: a value is out of range");
        for (size_t i = 0; i < p->n_watch; i++)
                if (p->watch[i][0] != '/' || !policy_path_is_normal(p->watch[i]))
                        return err_set(err, -EINVAL, ERR_INVALID, "filesystem.watch[%zu]: an absolute path is expected",
                                       i);
        if (m->writes.on && p->n_watch == 0)
                return err_set(err, -EINVAL, ERR_INVALID,
                               "monitor.writes: filesystem.watch must name the paths that it looks at");
        return 0;
}

/* --- canonical form --- */

static struct json *names_json(const struct policy_rule_names *r) {
        struct json *o = json_new_object(), *list = json_new_array();

        for (size_t i = 0; i < r->expect.n; i++)
                json_add_str(list, r->expect.names[i]);
        json_set(o, "expect", list);
        json_set_str(o, "action", policy_action_name(r->action));
        return o;
}

static void set_ms(struct json *o, const char *key, uint64_t ms) {
        char text[UNIT];

        (void) snprintf(text, sizeof(text), "%" PRIu64 "ms", ms);
        json_set_str(o, key, text);
}

struct json *policy_monitor_json(const struct policy *p) {
        const struct policy_monitor *m = &p->monitor;
        struct json *o = json_new_object(), *rule;

        json_set_str(o, "on_drift", drift_names[m->on_drift]);
        set_ms(o, "interval", m->interval_ms);
        if (m->refused_calls.on) {
                rule = json_new_object();
                json_set_int(rule, "over", m->refused_calls.over);
                set_ms(rule, "within", m->refused_calls.within_ms);
                json_set_str(rule, "action", policy_action_name(m->refused_calls.action));
                json_set(o, "refused_calls", rule);
        }
        if (m->programs.on)
                json_set(o, "programs", names_json(&m->programs));
        if (m->hosts.on)
                json_set(o, "hosts", names_json(&m->hosts));
        if (m->writes.on) {
                rule = json_new_object();
                json_set_str(rule, "action", policy_action_name(m->writes.action));
                json_set(o, "writes", rule);
        }
        if (m->resources.on) {
                rule = json_new_object();
                if (m->resources.memory_bytes)
                        json_set_int(rule, "memory", (int64_t) m->resources.memory_bytes);
                if (m->resources.pids)
                        json_set_int(rule, "pids", m->resources.pids);
                json_set_str(rule, "action", policy_action_name(m->resources.action));
                json_set(o, "resources", rule);
        }
        return o;
}

struct json *policy_watch_json(const struct policy *p) {
        struct json *list = json_new_array();

        for (size_t i = 0; i < p->n_watch; i++)
                json_add_str(list, p->watch[i]);
        return list;
}
