/* create.c - see create.h. */
#include "daemon/create.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"

struct fields {
        struct create *to;
        uint32_t timeout_s;
        bool secure, internet, auto_pause, auto_pause_memory, auto_resume, public_traffic, drop;
        char template[CREATE_TEMPLATE], name[STORE_NAME], mask_host[CREATE_MASK_HOST];
        struct buf env, metadata;
        struct json *pairs;
        size_t n_pairs;
        struct field_ctx const *at; /* of what is being walked */
        struct err *err;
};

/* --- members that are null count as absent --- */

static int copy_member(void *arg, const char *key, const struct json *value) {
        if (!json_is_null(value))
                json_set(arg, key, json_share(value));
        return 0;
}

/* The same object without its null members. Anything else is returned as it is. */
static struct json *without_nulls(const struct json *doc) {
        struct json *o;

        if (!json_is_object(doc))
                return json_share(doc);
        o = json_new_object();
        (void) json_each(doc, copy_member, o);
        return o;
}

/* --- single members --- */

static int later(const struct field_ctx *ctx, const char *what, struct err *err) {
        (void) field_error(ctx, err, "%s", what);
        return err->code = -ENOSYS;
}

static int one_pair(void *arg, const char *key, const struct json *value) {
        struct fields *f = arg;
        const char *text = json_str(value);

        if (!text)
                return field_error(f->at, f->err, "'%.40s' must be a string", key);
        buf_add(&f->metadata, key, strlen(key)); /* only its size counts */
        buf_add(&f->metadata, text, strlen(text));
        json_set_str(f->pairs, key, text);
        return 0;
}

static int decode_metadata(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct fields *f = at;
        int r;

        if (json_len(value) > CREATE_PAIRS)
                return field_error(ctx, err, "must have at most %d members", CREATE_PAIRS);
        f->at = ctx;
        f->err = err;
        r = json_each(value, one_pair, f);
        if (r < 0)
                return r;
        return f->metadata.bad ? field_error(ctx, err, "must have at most %d bytes", CREATE_METADATA) : 0;
}

static int one_variable(void *arg, const char *key, const struct json *value) {
        struct fields *f = arg;
        const char *text = json_str(value);

        if (!key[0] || strchr(key, '='))
                return field_error(f->at, f->err, "'%.40s' is no name of a variable", key);
        if (!text)
                return field_error(f->at, f->err, "'%.40s' must be a string", key);
        buf_add(&f->env, key, strlen(key));
        buf_add(&f->env, "=", 1);
        buf_add(&f->env, text, strlen(text) + 1);
        f->to->n_vars++;
        return 0;
}

static int decode_env(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct fields *f = at;
        int r;

        if (json_len(value) > CREATE_VARIABLES)
                return field_error(ctx, err, "must have at most %d members", CREATE_VARIABLES);
        f->at = ctx;
        f->err = err;
        r = json_each(value, one_variable, f);
        if (r < 0)
                return r;
        return f->env.bad ? field_error(ctx, err, "must have at most %d bytes", CREATE_ENV) : 0;
}

static int decode_resume(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field rows[] = {
                { .key = "enabled", .type = FIELD_BOOL, .offset = offsetof(struct fields, auto_resume) },
        };

        return field_decode(ctx, value, rows, ARRAY_SIZE(rows), at, err);
}

static int decode_volumes(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) value;
        (void) at;
        return later(ctx, "volumes are not available in this build", err);
}

static int decode_iam(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) value;
        (void) at;
        return later(ctx, "cloud identities are not available in this build", err);
}

/* Only says that the SDK will start a gateway inside, by itself. */
static int decode_mcp(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) at;
        return json_is_object(value) ? 0 : field_error(ctx, err, "must be an object");
}

static int decode_port(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        uint64_t port;
        char text[8];

        (void) at;
        if (json_str(value) || field_text(value, text, sizeof(text)) < 0 || str_to_u64(text, 65535, &port) < 0 ||
            port == 0)
                return field_error(ctx, err, "must be a port");
        return 0;
}

/* Rules for connections to the outside are the policy's to judge. */
static int leave(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        (void) ctx;
        (void) value;
        (void) at;
        (void) err;
        return 0;
}

static int decode_net(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field rows[] = {
                { .key = "allowOut", .type = FIELD_ANY, .decode = leave },
                { .key = "denyOut", .type = FIELD_ANY, .decode = leave },
                { .key = "rules", .type = FIELD_ANY, .decode = leave },
                { .key = "egressProxy", .type = FIELD_ANY, .decode = leave },
                { .key = "allowPublicTraffic", .type = FIELD_BOOL, .offset = offsetof(struct fields, public_traffic) },
                { .key = "maskRequestHost",
                  .type = FIELD_STR,
                  .offset = offsetof(struct fields, mask_host),
                  .size = CREATE_MASK_HOST },
                { .key = "httpsPorts", .type = FIELD_LIST, .size = 64, .decode = decode_port },
        };
        CLEANUP(json_freep) struct json *clean = without_nulls(value);
        struct fields *f = at;
        int r = field_decode(ctx, clean, rows, ARRAY_SIZE(rows), at, err);

        if (r == 0 && f->to)
                f->to->network = TAKE_PTR(clean);
        return r;
}

/* --- the whole --- */

static bool is_name(const char *s) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");

        return n > 0 && !s[n] && s[0] != '-' && s[n - 1] != '-';
}

static int check(const struct field_ctx *ctx, const struct fields *f, uint32_t timeout_max_s, struct err *err) {
        if (!f->template[0])
                return field_error(ctx, err, "templateID: must not be empty");
        if (f->name[0] && (!is_name(f->name) || strlen(f->name) == ID_LEN))
                return field_error(
                        ctx, err,
                        "name: must have letters a-z, digits and '-' inside, and not %d characters like an id", ID_LEN);
        if (f->timeout_s > timeout_max_s)
                return field_error(ctx, err, "timeout: must be between 1 and %u", timeout_max_s);
        if (!f->secure && !f->public_traffic)
                return field_error(ctx, err, "secure: must be true when network.allowPublicTraffic is false");
        if (!f->auto_pause_memory && (!f->auto_pause || f->auto_resume))
                return field_error(ctx, err, "autoPauseMemory: false needs autoPause, and no autoResume");
        if (f->auto_pause)
                return later(ctx, "autoPause: pausing is not available in this build", err);
        if (f->auto_resume)
                return later(ctx, "autoResume: pausing is not available in this build", err);
        return 0;
}

static int decode_all(const struct field_ctx *ctx, const struct json *doc, struct fields *f, struct err *err) {
#define AT(member) offsetof(struct fields, member)
        static const struct field rows[] = {
                { .key = "templateID",
                  .type = FIELD_STR,
                  .offset = AT(template),
                  .size = CREATE_TEMPLATE,
                  .required = true },
                { .key = "timeout", .type = FIELD_U32, .offset = AT(timeout_s), .size = CREATE_TIMEOUT_EVER, .min = 1 },
                { .key = "metadata", .type = FIELD_OBJECT, .decode = decode_metadata },
                { .key = "envVars", .type = FIELD_OBJECT, .decode = decode_env },
                { .key = "secure", .type = FIELD_BOOL, .offset = AT(secure) },
                { .key = "allow_internet_access", .type = FIELD_BOOL, .offset = AT(internet) },
                { .key = "network", .type = FIELD_OBJECT, .decode = decode_net },
                { .key = "autoPause", .type = FIELD_BOOL, .offset = AT(auto_pause) },
                { .key = "autoPauseMemory", .type = FIELD_BOOL, .offset = AT(auto_pause_memory) },
                { .key = "autoResume", .type = FIELD_OBJECT, .decode = decode_resume },
                { .key = "volumeMounts", .type = FIELD_LIST, .decode = decode_volumes },
                { .key = "iam", .type = FIELD_ANY, .decode = decode_iam },
                { .key = "mcp", .type = FIELD_ANY, .decode = decode_mcp },
                { .key = "name", .type = FIELD_STR, .offset = AT(name), .size = STORE_NAME },
        };
#undef AT
        CLEANUP(json_freep) struct json *clean = without_nulls(doc);

        return field_decode(ctx, clean, rows, ARRAY_SIZE(rows), f, err);
}

int create_decode(const struct json *doc, bool v2, uint32_t timeout_max_s, struct create *ret, struct err *err) {
        static const struct field_ctx ctx = { .what = "request" };
        struct fields f = { .to = ret,
                            .timeout_s = v2 ? CREATE_TIMEOUT_V2 : CREATE_TIMEOUT_V1,
                            .secure = true,
                            .internet = true,
                            .auto_pause_memory = true,
                            .public_traffic = true,
                            .env = BUF_INIT(CREATE_ENV),
                            .metadata = BUF_INIT(CREATE_METADATA),
                            .pairs = json_new_object() };
        int r;

        *ret = (struct create){ 0 };
        if (f.timeout_s > timeout_max_s)
                f.timeout_s = timeout_max_s;
        r = decode_all(&ctx, doc, &f, err);
        if (r == 0)
                r = check(&ctx, &f, timeout_max_s, err);
        if (r == 0)
                r = json_text(f.pairs, false, &ret->metadata, err);
        if (r == 0) {
                (void) str_copy(ret->template, sizeof(ret->template), f.template);
                (void) str_copy(ret->name, sizeof(ret->name), f.name);
                (void) str_copy(ret->mask_host, sizeof(ret->mask_host), f.mask_host);
                ret->timeout_s = f.timeout_s;
                ret->internet = f.internet;
                ret->private_ports = !f.public_traffic;
                ret->n_env = f.env.len;
                ret->env = TAKE_PTR(f.env.p);
        } else {
                create_done(ret);
        }
        (void) json_free(f.pairs);
        buf_done(&f.env);
        buf_done(&f.metadata);
        return r;
}

void create_done(struct create *c) {
        c->network = json_free(c->network);
        free(TAKE_PTR(c->metadata));
        if (c->env)
                explicit_bzero(c->env, c->n_env); /* they are often secrets */
        free(TAKE_PTR(c->env));
}

int create_decode_timeout(const struct json *doc, uint32_t min_s, uint32_t max_s, bool required, uint32_t *ret,
                          struct err *err) {
        static const struct field_ctx ctx = { .what = "request" };
        struct fields f = { .timeout_s = *ret };
        const struct field rows[] = {
                { .key = "timeout",
                  .type = FIELD_U32,
                  .offset = offsetof(struct fields, timeout_s),
                  .size = max_s,
                  .min = min_s,
                  .required = required },
                { .key = "memory", .type = FIELD_BOOL, .offset = offsetof(struct fields, auto_pause_memory) },
        };
        CLEANUP(json_freep) struct json *clean = without_nulls(doc);
        int r = field_decode(&ctx, clean, rows, ARRAY_SIZE(rows), &f, err);

        if (r == 0)
                *ret = f.timeout_s < max_s ? f.timeout_s : max_s;
        return r;
}

int create_decode_refresh(const struct json *doc, uint32_t *ret, struct err *err) {
        static const struct field_ctx ctx = { .what = "request" };
        static const struct field rows[] = {
                { .key = "duration",
                  .type = FIELD_U32,
                  .offset = offsetof(struct fields, timeout_s),
                  .size = REFRESH_MAX },
        };
        CLEANUP(json_freep) struct json *clean = without_nulls(doc);
        struct fields f = { .timeout_s = *ret };
        int r = field_decode(&ctx, clean, rows, ARRAY_SIZE(rows), &f, err);

        if (r == 0)
                *ret = f.timeout_s;
        return r;
}

static int copy_rule(void *arg, const char *key, const struct json *value) {
        if (!json_is_null(value) && !str_eq(key, "allow_internet_access") && !str_eq(key, "dropExisting"))
                json_set(arg, key, json_share(value));
        return 0;
}

int create_decode_network(const struct json *doc, struct json **ret_network, bool *ret_internet, bool *ret_drop,
                          struct err *err) {
        static const struct field_ctx ctx = { .what = "request" };
        static const struct field rows[] = {
                { .key = "allowOut", .type = FIELD_ANY, .decode = leave },
                { .key = "denyOut", .type = FIELD_ANY, .decode = leave },
                { .key = "rules", .type = FIELD_ANY, .decode = leave },
                { .key = "egressProxy", .type = FIELD_ANY, .decode = leave },
                { .key = "allow_internet_access", .type = FIELD_BOOL, .offset = offsetof(struct fields, internet) },
                { .key = "dropExisting", .type = FIELD_BOOL, .offset = offsetof(struct fields, drop) },
        };
        CLEANUP(json_freep) struct json *clean = without_nulls(doc), *network = NULL;
        struct fields f = { .internet = true };
        int r = field_decode(&ctx, clean, rows, ARRAY_SIZE(rows), &f, err);

        if (r < 0)
                return r;
        network = json_new_object();
        (void) json_each(clean, copy_rule, network);
        *ret_network = TAKE_PTR(network);
        *ret_internet = f.internet;
        *ret_drop = f.drop;
        return 0;
}
