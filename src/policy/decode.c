/*
 * decode.c - the schema as field tables.
 *
 * Invariant: whatever a document says is either enforced by this build or refused by name. Parts of the schema that
 * are not built yet have rows as well, so that they are told apart from typos; of those, only values that ask for
 * nothing pass.
 */
#include "policy/decode.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "policy/limits.h"
#include "policy/mount.h"
#include "policy/net_rules.h"
#include "policy/policy.h"

enum { LIMIT_TEXT = 64, SHOWN = 40 };

/* The member at ctx if it is a string. All rows below are members of objects. */
static int string_at(const struct field_ctx *ctx, const char **ret, struct err *err) {
        *ret = json_get_str(ctx->in, ctx->key);
        return *ret ? 0 : field_error(ctx, err, "must be a string");
}

/* A member with one legal value. `others` says why there is only one. */
static int only(const struct field_ctx *ctx, const char *value, const char *others, struct err *err) {
        const char *text;
        int r = string_at(ctx, &text, err);

        if (r == 0 && !str_eq(text, value))
                r = field_error(ctx, err, "'%.*s' is not available%s; allowed: %s", SHOWN, text, others, value);
        return r;
}

static int decode_version(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) value;
        (void) at;
        if (json_get_int(ctx->in, ctx->key, 0) != 1)
                return field_error(ctx, err, "must be 1");
        return 0;
}

static int decode_name(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const char *text;
        int r = string_at(ctx, &text, err);

        (void) value;
        if (r == 0 && !policy_is_name(text))
                r = field_error(ctx, err,
                                "must be 1 to %d letters, digits, '.', '_' and '-', the first a letter or digit",
                                POLICY_NAME - 1);
        return r < 0 ? r : str_copy(at, POLICY_NAME, text);
}

static int decode_tier(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const char *text;
        int r = string_at(ctx, &text, err);

        (void) value;
        if (r < 0)
                return r;
        if (str_eq(text, policy_tier_name(POLICY_TIER_GVISOR)) || str_eq(text, policy_tier_name(POLICY_TIER_MICROVM)))
                return field_error(ctx, err, "%s is not available in this build; the tier is never downgraded silently",
                                   text);
        if (!str_eq(text, policy_tier_name(POLICY_TIER_NS)))
                return field_error(ctx, err, "unknown tier '%.*s'; allowed: ns", SHOWN, text);
        *(enum policy_tier *) at = POLICY_TIER_NS;
        return 0;
}

static int decode_template(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        int r = only(ctx, "host", " in this build", err);

        (void) value;
        return r < 0 ? r : str_copy(at, POLICY_NAME, "host");
}

static int decode_user(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const char *text;
        struct err why;
        int r = string_at(ctx, &text, err);

        (void) value;
        if (r == 0 && policy_parse_user(text, at, &why) < 0)
                r = field_error(ctx, err, "%s", why.msg);
        return r;
}

static int decode_syscalls(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const char *text;
        struct err why;
        int r = string_at(ctx, &text, err);

        (void) value;
        if (r == 0 && policy_parse_syscalls(text, at, &why) < 0)
                r = field_error(ctx, err, "%s", why.msg);
        return r;
}

/* --- what this build cannot do --- */

static bool asks_for_nothing(const struct json *value) {
        return (json_is_array(value) || json_is_object(value)) && json_len(value) == 0;
}

static int refuse(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) at;
        return asks_for_nothing(value) ? 0 : field_error(ctx, err, "not available in this build");
}

static int decode_packages_mode(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) value;
        (void) at;
        return only(ctx, "off", " in this build", err);
}

static int decode_storage(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) value;
        (void) at;
        return only(ctx, "memory", " in this build", err);
}

static int decode_packages(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { .key = "mode", .type = FIELD_ANY, .decode = decode_packages_mode },
        };

        return field_decode(ctx, value, fields, ARRAY_SIZE(fields), at, err);
}

/* --- mounts and limits --- */

static int decode_path(const struct field_ctx *ctx, int (*check)(const char *, struct err *), char *dst,
                       struct err *err) {
        const char *text;
        struct err why;
        int r = string_at(ctx, &text, err);

        if (r == 0 && check(text, &why) < 0)
                r = field_error(ctx, err, "%s", why.msg);
        return r < 0 ? r : str_copy(dst, POLICY_PATH, text);
}

static int decode_source(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) value;
        return decode_path(ctx, policy_mount_check_source, at, err);
}

static int decode_target(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) value;
        return decode_path(ctx, policy_mount_check_target, at, err);
}

static int decode_mode(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const char *text;
        int r = string_at(ctx, &text, err);

        (void) value;
        if (r < 0)
                return r;
        if (!str_eq(text, "ro") && !str_eq(text, "rw"))
                return field_error(ctx, err, "must be ro or rw");
        *(bool *) at = str_eq(text, "rw");
        return 0;
}

static int decode_mount(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { .key = "source",
                  .type = FIELD_ANY,
                  .offset = offsetof(struct policy_mount, source),
                  .required = true,
                  .decode = decode_source },
                { .key = "target",
                  .type = FIELD_ANY,
                  .offset = offsetof(struct policy_mount, target),
                  .required = true,
                  .decode = decode_target },
                { .key = "mode",
                  .type = FIELD_ANY,
                  .offset = offsetof(struct policy_mount, writable),
                  .decode = decode_mode },
        };
        struct policy *p = at;
        struct policy_mount *m = &p->mounts[p->n_mounts]; /* the table of the list bounds their number */
        struct err why;
        int r;

        m->writable = false;
        r = field_decode(ctx, value, fields, ARRAY_SIZE(fields), m, err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < p->n_mounts; i++)
                if (policy_mount_check_pair(p->mounts[i].target, m->target, &why) < 0)
                        return field_error(ctx, err, "%s", why.msg);
        p->n_mounts++;
        return 0;
}

static int decode_filesystem(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field fields[] = {
                { .key = "mounts", .type = FIELD_LIST, .size = POLICY_MOUNTS, .decode = decode_mount },
                { .key = "storage", .type = FIELD_ANY, .decode = decode_storage },
                { .key = "watch", .type = FIELD_LIST, .size = POLICY_WATCHES, .decode = policy_watch_decode },
        };
        struct policy *p = at;

        if (json_get(value, "mounts"))
                p->n_mounts = 0; /* a list replaces the one below it */
        if (json_get(value, "watch"))
                p->n_watch = 0;
        return field_decode(ctx, value, fields, ARRAY_SIZE(fields), p, err);
}

static int decode_limit(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        char text[LIMIT_TEXT];
        struct err why;

        if (field_text(value, text, sizeof(text)) < 0)
                return field_error(ctx, err, "must be shorter than %d characters", LIMIT_TEXT);
        if (policy_limits_set(at, ctx->key, text, &why) < 0)
                return field_error(ctx, err, "%s", why.msg);
        return 0;
}

static int decode_limits(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        /* Every row gets the whole struct: policy_limits_set() finds the member by its name. */
        static const struct field fields[] = {
                { .key = "memory", .type = FIELD_TEXT, .decode = decode_limit },
                { .key = "cpu", .type = FIELD_TEXT, .decode = decode_limit },
                { .key = "pids", .type = FIELD_TEXT, .decode = decode_limit },
                { .key = "disk", .type = FIELD_TEXT, .decode = decode_limit },
                { .key = "time", .type = FIELD_TEXT, .decode = decode_limit },
                { .key = "output", .type = FIELD_TEXT, .decode = decode_limit },
                { .key = "files", .type = FIELD_TEXT, .decode = decode_limit },
                { .key = "io", .type = FIELD_TEXT, .decode = decode_limit },
        };

        return field_decode(ctx, value, fields, ARRAY_SIZE(fields), at, err);
}

#define AT(member) offsetof(struct policy, member)
static const struct field policy_fields[] = {
        { .key = "version", .type = FIELD_ANY, .required = true, .decode = decode_version },
        { .key = "name", .type = FIELD_ANY, .offset = AT(name), .decode = decode_name },
        { .key = "tier", .type = FIELD_ANY, .offset = AT(tier), .decode = decode_tier },
        { .key = "template", .type = FIELD_ANY, .offset = AT(template), .decode = decode_template },
        { .key = "user", .type = FIELD_ANY, .offset = AT(user), .decode = decode_user },
        { .key = "filesystem", .type = FIELD_OBJECT, .decode = decode_filesystem },
        { .key = "network", .type = FIELD_OBJECT, .offset = AT(net), .decode = net_decode },
        { .key = "packages", .type = FIELD_OBJECT, .decode = decode_packages },
        { .key = "secrets", .type = FIELD_ANY, .decode = refuse },
        { .key = "limits", .type = FIELD_OBJECT, .offset = AT(limits), .decode = decode_limits },
        { .key = "syscalls", .type = FIELD_ANY, .offset = AT(syscalls), .decode = decode_syscalls },
        { .key = "lifecycle", .type = FIELD_ANY, .decode = refuse },
        { .key = "monitor", .type = FIELD_OBJECT, .offset = AT(monitor), .decode = policy_monitor_decode },
};
#undef AT

/* A ceiling is compared by its network alone; what else it said would be ignored. */
static const struct field net_fields[] = {
        { .key = "version", .type = FIELD_ANY, .required = true, .decode = decode_version },
        { .key = "name", .type = FIELD_ANY, .offset = offsetof(struct policy, name), .decode = decode_name },
        { .key = "network", .type = FIELD_OBJECT, .offset = offsetof(struct policy, net), .decode = net_decode },
};

int policy_copy(const struct policy *of, struct policy **ret, struct err *err) {
        CLEANUP(policy_freep) struct policy *copy = malloc(sizeof(*copy));

        if (!copy)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "policy");
        *copy = *of;
        copy->net = NULL; /* for the case that the next line fails */
        if (net_clone(of->net, &copy->net) < 0)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "policy");
        *ret = TAKE_PTR(copy);
        return 0;
}

void policy_move(struct policy *to, struct policy *from) {
        policy_done(to);
        *to = *from;
        from->net = NULL;
}

void policy_freep(struct policy **p) {
        if (*p)
                policy_done(*p);
        free(*p);
}

typedef int (*check_fn)(const struct policy *p, struct err *err);

static int decode_table(const struct field_ctx *ctx, const struct json *doc, const struct field *fields, size_t n,
                        check_fn check, struct policy *p, struct err *err) {
        CLEANUP(policy_freep) struct policy *copy = NULL;
        const struct field_ctx file = { .what = ctx->what }; /* what concerns several members has no line */
        struct err why;
        int r = policy_copy(p, &copy, err);

        if (r < 0)
                return r;
        r = field_decode(ctx, doc, fields, n, copy, err);
        if (r < 0)
                return r;
        if (check(copy, &why) < 0)
                return field_error(&file, err, "%s", why.msg);
        policy_move(p, copy);
        return 0;
}

int policy_decode_at(const struct field_ctx *ctx, const struct json *doc, struct policy *p, struct err *err) {
        return decode_table(ctx, doc, policy_fields, ARRAY_SIZE(policy_fields), policy_check_parts, p, err);
}

int policy_decode_net_at(const struct field_ctx *ctx, const struct json *doc, struct policy *p, struct err *err) {
        return decode_table(ctx, doc, net_fields, ARRAY_SIZE(net_fields), policy_check_parts, p, err);
}

int policy_decode_net(const struct json *doc, struct policy *p, struct err *err) {
        const struct field_ctx ctx = { .what = "ceiling" };

        return decode_table(&ctx, doc, net_fields, ARRAY_SIZE(net_fields), policy_check, p, err);
}

int policy_decode(const struct json *doc, struct policy *p, struct err *err) {
        const struct field_ctx ctx = { .what = "policy" };

        return decode_table(&ctx, doc, policy_fields, ARRAY_SIZE(policy_fields), policy_check, p, err);
}
