/* config.c - see config.h. File and command line go through the same setters, so that they cannot disagree. */
#include "daemon/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "http/http.h"
#include "json/json.h"
#include "policy/net.h"
#include "policy/net_flags.h"

bool config_is_tls(const char *listen) {
        return str_has_prefix(listen, CONFIG_TLS);
}

static const char *const levels[] = { "error", "warning", "info", NULL };

void config_default(struct config *c) {
        memset(c, 0, sizeof(*c));
        (void) str_copy(c->data, sizeof(c->data), "/var/lib/gabion");
        (void) str_copy(c->warden, sizeof(c->warden), "/run/gabion-warden/warden.sock");
        (void) str_copy(c->audit, sizeof(c->audit), "/run/gabion/notary/socket");
        c->level = LOG_INFO;
        c->timeout_max_s = CREATE_TIMEOUT_MAX;
        c->pool = POOL_DEFAULT;
        c->capacity.sandboxes = CAPACITY_SANDBOXES;
        c->capacity.reserve_bytes = UINT64_C(256) << 20;
        c->queue.waiting = ADMIT_WAITING;
        c->queue.waiting_tenant = ADMIT_WAITING_TENANT;
        c->queue.starting = ADMIT_STARTING;
        c->queue.wait_ms = ADMIT_WAIT_MS;
        policy_default(&c->policy);
        policy_default(&c->ceiling);
}

void config_done(struct config *c) {
        policy_done(&c->policy);
        policy_done(&c->ceiling);
}

static int set_text(char *dst, size_t cap, const char *name, const char *value, struct err *err) {
        if (!*value || str_copy(dst, cap, value) < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "%s: must have 1 to %zu characters", name, cap - 1);
        return 0;
}

static int set_path(char *dst, const char *name, const char *value, struct err *err) {
        if (*value != '/')
                return err_set(err, -EINVAL, ERR_INVALID, "%s: '%.60s' is not an absolute path", name, value);
        return set_text(dst, DAEMON_PATH, name, value, err);
}

static int set_listen(struct config *c, const char *value, struct err *err) {
        if (c->n_listen == DAEMON_LISTENERS)
                return err_set(err, -E2BIG, ERR_INVALID, "listen: at most %d addresses", DAEMON_LISTENERS);
        return set_text(c->listen[c->n_listen++], DAEMON_ADDRESS, "listen", value, err);
}

static int set_domain(struct config *c, const char *value, struct err *err) {
        char host[HTTP_HOST_MAX + 1];
        uint16_t port;

        if (http_parse_host(value, host, &port) < 0 || host[0] == '[')
                return err_set(err, -EINVAL, ERR_INVALID, "domain: '%.60s' is not NAME or NAME:PORT", value);
        return set_text(c->domain, sizeof(c->domain), "domain", value, err);
}

static int set_level(struct config *c, const char *value, struct err *err) {
        for (int i = 0; levels[i]; i++)
                if (str_eq(levels[i], value)) {
                        c->level = i;
                        return 0;
                }
        return err_set(err, -EINVAL, ERR_INVALID, "log: '%.20s' is not one of: error warning info", value);
}

static int set_pool(struct config *c, const char *value, struct err *err) {
        uint64_t n;

        if (str_to_u64(value, POOL_MAX, &n) < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "pool: must be a number up to %d", POOL_MAX);
        c->pool = (uint32_t) n;
        return 0;
}

static int set_audit(struct config *c, const char *value, struct err *err) {
        if (!str_eq(value, "off"))
                return set_path(c->audit, "audit", value, err);
        c->audit[0] = '\0';
        return 0;
}

static int set_parent(struct config *c, const char *value, struct err *err) {
        uint64_t pid;

        if (str_to_u64(value, INT32_MAX, &pid) < 0 || pid == 0)
                return err_set(err, -EINVAL, ERR_INVALID, "with-parent: '%.20s' is no process", value);
        c->parent = (uint32_t) pid;
        return 0;
}

/* none, public, packages, or a file with version, name and network. */
static int set_ceiling(struct config *c, const char *value, struct err *err) {
        static const struct policy_packages from = { .root = "", .home = "" };
        int r = policy_net_flag_net(&c->ceiling, value, err);

        if (r == 0)
                r = policy_net_expand(&c->ceiling, &from, err);
        return r < 0 ? err_wrap(err, "ceiling") : 0;
}

static int set_policy(struct config *c, const char *value, struct err *err) {
        int r = policy_read_file(value, &c->policy, err);

        if (r == 0 && policy_net_any(&c->policy))
                r = err_set(err, -EINVAL, ERR_INVALID,
                            "policy: the network comes with each request; limit it with a ceiling instead");
        return r;
}

int config_set(struct config *c, const char *name, const char *value, struct err *err) {
        if (str_eq(name, "listen"))
                return set_listen(c, value, err);
        if (str_eq(name, "data"))
                return set_path(c->data, name, value, err);
        if (str_eq(name, "warden"))
                return set_path(c->warden, name, value, err);
        if (str_eq(name, "audit"))
                return set_audit(c, value, err);
        if (str_eq(name, "key-file"))
                return set_text(c->key_file, sizeof(c->key_file), name, value, err);
        if (str_eq(name, "certificate"))
                return set_path(c->certificate, name, value, err);
        if (str_eq(name, "certificate-key"))
                return set_path(c->certificate_key, name, value, err);
        if (str_eq(name, "user"))
                return set_text(c->user, sizeof(c->user), name, value, err);
        if (str_eq(name, "domain"))
                return set_domain(c, value, err);
        if (str_eq(name, "log"))
                return set_level(c, value, err);
        if (str_eq(name, "pool"))
                return set_pool(c, value, err);
        if (str_eq(name, "with-parent"))
                return set_parent(c, value, err);
        if (str_eq(name, "ceiling"))
                return set_ceiling(c, value, err);
        if (str_eq(name, "policy"))
                return set_policy(c, value, err);
        return err_set(err, -EINVAL, ERR_INVALID, "%.40s: no such setting", name);
}

/* --- the file --- */

/* A member that the command line has too. at is the whole struct: these rows have offset 0. */
static int decode_setting(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        char text[DAEMON_PATH];
        struct err why = { 0 };
        int r = field_text(value, text, sizeof(text));

        if (r < 0)
                return field_error(ctx, err, "must be a text of at most %d characters", DAEMON_PATH - 1);
        r = config_set(at, ctx->key, text, &why);
        return r < 0 ? field_error(ctx, err, "%s", why.msg) : 0;
}

static int decode_listen(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const char *text = json_str(value);

        if (!text)
                return field_error(ctx, err, "must be a string");
        return set_listen(at, text, err);
}

static int decode_size(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct err why = { 0 };
        char text[32];
        int r = field_text(value, text, sizeof(text));

        if (r == 0)
                r = policy_parse_size(ctx->key, text, 0, UINT64_C(1) << 50, at, &why);
        return r < 0 ? field_error(ctx, err, "%s", why.msg[0] ? why.msg : "must be a size like 512M") : 0;
}

static int decode_cpus(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct err why = { 0 };
        char text[32];
        int r = field_text(value, text, sizeof(text));

        if (r == 0)
                r = policy_parse_cpus(ctx->key, text, at, &why);
        return r < 0 ? field_error(ctx, err, "%s", why.msg[0] ? why.msg : "must be a number of CPUs") : 0;
}

static int decode_wait(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct err why = { 0 };
        uint64_t ms = 0;
        char text[32];
        int r = field_text(value, text, sizeof(text));

        if (r == 0)
                r = policy_parse_duration_ms(ctx->key, text, 1, 600000, &ms, &why);
        *(uint32_t *) at = (uint32_t) ms;
        return r < 0 ? field_error(ctx, err, "%s", why.msg[0] ? why.msg : "must be a duration like 10s") : 0;
}

#define AT(member) offsetof(struct config, member)

static int decode_quota(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field rows[] = {
                { .key = "sandboxes", .type = FIELD_U32, .offset = AT(quota.sandboxes), .size = UINT32_MAX },
                { .key = "creates_per_s", .type = FIELD_U32, .offset = AT(quota.creates_per_s), .size = UINT32_MAX },
                { .key = "cpu", .type = FIELD_TEXT, .offset = AT(quota.cpu_milli), .decode = decode_cpus },
                { .key = "memory", .type = FIELD_TEXT, .offset = AT(quota.memory_bytes), .decode = decode_size },
                { .key = "disk", .type = FIELD_TEXT, .offset = AT(quota.disk_bytes), .decode = decode_size },
        };

        return field_decode(ctx, value, rows, ARRAY_SIZE(rows), at, err);
}

static int decode_capacity(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field rows[] = {
                { .key = "sandboxes",
                  .type = FIELD_U32,
                  .offset = AT(capacity.sandboxes),
                  .size = CAPACITY_SANDBOXES_MAX,
                  .min = 1 },
                { .key = "cpu", .type = FIELD_TEXT, .offset = AT(capacity.cpu_milli), .decode = decode_cpus },
                { .key = "memory", .type = FIELD_TEXT, .offset = AT(capacity.memory_bytes), .decode = decode_size },
                { .key = "disk", .type = FIELD_TEXT, .offset = AT(capacity.disk_bytes), .decode = decode_size },
                { .key = "reserve", .type = FIELD_TEXT, .offset = AT(capacity.reserve_bytes), .decode = decode_size },
        };

        return field_decode(ctx, value, rows, ARRAY_SIZE(rows), at, err);
}

static int decode_queue(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        static const struct field rows[] = {
                { .key = "waiting", .type = FIELD_U32, .offset = AT(queue.waiting), .size = 100000 },
                { .key = "waiting_tenant", .type = FIELD_U32, .offset = AT(queue.waiting_tenant), .size = 100000 },
                { .key = "starting", .type = FIELD_U32, .offset = AT(queue.starting), .size = 1024, .min = 1 },
                { .key = "wait", .type = FIELD_TEXT, .offset = AT(queue.wait_ms), .decode = decode_wait },
        };

        return field_decode(ctx, value, rows, ARRAY_SIZE(rows), at, err);
}

static int one_source(void *arg, const char *key, const struct json *value) {
        struct config *c = arg;
        const char *text = json_str(value);
        struct addr a;

        if (c->n_sources == DAEMON_SOURCES || !text || addr_parse(text, &a) < 0 ||
            str_copy(c->sources[c->n_sources].tenant, STORE_NAME, key) < 0)
                return -EINVAL;
        addr_text(&a, c->sources[c->n_sources++].address);
        return 0;
}

static int decode_sources(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        return json_each(value, one_source, at) == 0
                       ? 0
                       : field_error(ctx, err, "must have a tenant's name and an address each, at most %d",
                                     DAEMON_SOURCES);
}

static int decode_document(const struct field_ctx *ctx, const struct json *doc, struct config *c, struct err *err) {
        static const struct field rows[] = {
                { .key = "listen", .type = FIELD_LIST, .size = DAEMON_LISTENERS, .decode = decode_listen },
                { .key = "data", .type = FIELD_TEXT, .decode = decode_setting },
                { .key = "warden", .type = FIELD_TEXT, .decode = decode_setting },
                { .key = "audit", .type = FIELD_TEXT, .decode = decode_setting },
                { .key = "certificate", .type = FIELD_TEXT, .decode = decode_setting },
                { .key = "certificate-key", .type = FIELD_TEXT, .decode = decode_setting },
                { .key = "domain", .type = FIELD_TEXT, .decode = decode_setting },
                { .key = "log", .type = FIELD_TEXT, .decode = decode_setting },
                { .key = "policy", .type = FIELD_TEXT, .decode = decode_setting },
                { .key = "ceiling", .type = FIELD_TEXT, .decode = decode_setting },
                { .key = "keep", .type = FIELD_BOOL, .offset = AT(keep) },
                { .key = "pool", .type = FIELD_U32, .offset = AT(pool), .size = POOL_MAX },
                { .key = "quota", .type = FIELD_OBJECT, .decode = decode_quota },
                { .key = "capacity", .type = FIELD_OBJECT, .decode = decode_capacity },
                { .key = "queue", .type = FIELD_OBJECT, .decode = decode_queue },
                { .key = "source_addresses", .type = FIELD_OBJECT, .decode = decode_sources },
                { .key = "timeout_max",
                  .type = FIELD_U32,
                  .offset = AT(timeout_max_s),
                  .size = CREATE_TIMEOUT_EVER,
                  .min = 1 },
        };

        return field_decode(ctx, doc, rows, ARRAY_SIZE(rows), c, err);
}

int config_read(struct config *c, const char *path, struct err *err) {
        CLEANUP(json_lines_freep) struct json_lines *lines = NULL;
        CLEANUP(json_freep) struct json *doc = NULL;
        struct field_ctx ctx = { .what = path };
        AUTO_FREE char *text = malloc(DAEMON_FILE);
        int n;

        if (!text)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "settings");
        n = fd_read_at(AT_FDCWD, path, text, DAEMON_FILE);
        if (n < 0)
                return err_set(err, n, ERR_INVALID, "settings %.150s: %s", path, strerror(-n));
        n = json_parse_yaml(path, text, (size_t) n, &doc, &lines, err);
        ctx.lines = lines;
        return n < 0 ? n : decode_document(&ctx, doc, c, err);
}

/* A server on loopback is reached under localhost, also with the names of sandboxes in front. */
static void guess_domain(struct config *c) {
        const char *port;

        for (size_t i = 0; !c->domain[0] && i < c->n_listen; i++) {
                const char *at = c->listen[i] + (config_is_tls(c->listen[i]) ? strlen(CONFIG_TLS) : 0);

                if (str_has_prefix(at, "127.0.0.1:") || str_has_prefix(at, "localhost:")) {
                        port = strrchr(at, ':');
                        if (!str_eq(port, ":0"))
                                (void) snprintf(c->domain, sizeof(c->domain), "localhost%s", port);
                }
        }
}

static int check_tls(const struct config *c, struct err *err) {
        bool wanted = false;

        for (size_t i = 0; i < c->n_listen; i++)
                wanted = wanted || config_is_tls(c->listen[i]);
        if (wanted && !(c->certificate[0] && c->certificate_key[0]))
                return err_set(err, -EINVAL, ERR_INVALID, "listen: tls: needs certificate and certificate-key");
        if (!wanted && (c->certificate[0] || c->certificate_key[0]))
                return err_set(err, -EINVAL, ERR_INVALID, "certificate: no listener uses it; write tls:ADDRESS:PORT");
        return 0;
}

const char *config_source(const struct config *c, const char *tenant) {
        for (size_t i = 0; i < c->n_sources; i++)
                if (str_eq(c->sources[i].tenant, tenant))
                        return c->sources[i].address;
        return "";
}

int config_check(struct config *c, struct err *err) {
        char *text = NULL;
        int r;

        if (c->n_listen == 0) {
                r = set_listen(c, "127.0.0.1:3000", err);
                if (r < 0)
                        return r;
        }
        guess_domain(c);
        r = check_tls(c, err);
        if (r == 0)
                r = policy_check(&c->policy, err);
        if (r == 0) /* it is stored and sent in this form, so it must have one */
                r = policy_canonical(&c->ceiling, &text, err);
        free(text);
        return r;
}
