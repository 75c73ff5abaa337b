/* config.c - see config.h. */
#include "egress/config.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "http/http.h"
#include "json/json.h"

enum { URL_MAX = 1024, PORT_HTTP = 3128, PORT_SOCKS = 1080 };

/* The string at ctx, "" for null. */
static int optional(const struct field_ctx *ctx, const struct json *value, const char **ret, struct err *err) {
        *ret = json_is_null(value) ? "" : json_get_str(ctx->in, ctx->key);
        return *ret ? 0 : field_error(ctx, err, "must be a string or null");
}

static int decode_path(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const char *s;
        int r = optional(ctx, value, &s, err);

        if (r == 0 && s[0] && (s[0] != '/' || strlen(s) >= CONFIG_PATH))
                r = field_error(ctx, err, "must be an absolute path of at most %d bytes", CONFIG_PATH - 1);
        return r < 0 ? r : str_copy(at, CONFIG_PATH, s);
}

static int decode_bind(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        const char *s;
        int r = optional(ctx, value, &s, err);

        if (r == 0 && s[0] && addr_parse(s, at) < 0)
                r = field_error(ctx, err, "must be an IP address");
        return r;
}

/* A part of a URL's user information. A control character could end a header line of the proxy's. */
static int decode_secret(const char *p, size_t n, char dst[CONFIG_SECRET]) {
        int r = http_percent_decode(p, n, dst, CONFIG_SECRET);

        for (const char *s = dst; r == 0 && *s; s++)
                if (*s < ' ' || *s > '~')
                        r = -EINVAL;
        return r;
}

static int split_user(struct config *c, const char *p, size_t n) {
        const char *colon = memchr(p, ':', n);
        size_t user = colon ? (size_t) (colon - p) : n;

        if (user == 0 || decode_secret(p, user, c->proxy.user) < 0 || strchr(c->proxy.user, ':'))
                return -EINVAL;
        return colon ? decode_secret(colon + 1, n - user - 1, c->proxy.password) : 0;
}

static int split_host(struct config *c, const char *p, size_t n) {
        char text[HTTP_HOST_MAX + 8], host[HTTP_HOST_MAX + 1];
        size_t len;

        if (n >= sizeof(text))
                return -EINVAL;
        memcpy(text, p, n);
        text[n] = '\0';
        if (http_parse_host(text, host, &c->proxy.port) < 0)
                return -EINVAL;
        if (c->proxy.port == 0)
                c->proxy.port = c->proxy.kind == CONFIG_PROXY_HTTP ? PORT_HTTP : PORT_SOCKS;
        len = strlen(host);
        if (host[0] == '[') {
                host[len - 1] = '\0';
                return addr_parse(host + 1, &c->proxy.address);
        }
        return addr_parse(host, &c->proxy.address) == 0 ? 0 : host_canonical(host, len, c->proxy.name);
}

static int decode_proxy(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        struct config *c = at;
        const char *s, *host, *end, *user;
        int r = optional(ctx, value, &s, err);

        if (r < 0 || !s[0])
                return r;
        c->proxy.kind = str_has_prefix(s, "http://")     ? CONFIG_PROXY_HTTP
                        : str_has_prefix(s, "socks5://") ? CONFIG_PROXY_SOCKS5
                                                         : CONFIG_PROXY_NONE;
        if (c->proxy.kind == CONFIG_PROXY_NONE || strlen(s) > URL_MAX)
                return field_error(ctx, err, "must begin with http:// or socks5://");
        host = strstr(s, "://") + 3;
        end = host + strcspn(host, "/");
        user = memrchr(host, '@', (size_t) (end - host));
        /* The value may hold a password, so no message repeats it. */
        if (end[0] == '/' && end[1])
                r = -EINVAL;
        if (r == 0 && user)
                r = split_user(c, host, (size_t) (user - host));
        if (r == 0)
                r = split_host(c, user ? user + 1 : host, (size_t) (end - (user ? user + 1 : host)));
        return r < 0 ? field_error(ctx, err, "must be SCHEME://[USER:PASSWORD@]HOST[:PORT]") : 0;
}

static const struct field fields[] = {
        { "resolv_conf", FIELD_ANY, offsetof(struct config, resolv_conf), .required = true, .decode = decode_path },
        { "hosts", FIELD_ANY, offsetof(struct config, hosts), .required = true, .decode = decode_path },
        { "upstream_proxy", FIELD_ANY, 0, .decode = decode_proxy },
        { "upstream_names", FIELD_BOOL, offsetof(struct config, upstream_names), .required = false },
        { "bind", FIELD_ANY, offsetof(struct config, bind), .decode = decode_bind },
        { "ca_bundle", FIELD_ANY, offsetof(struct config, ca_bundle), .decode = decode_path },
        { "open_tls", FIELD_BOOL, offsetof(struct config, open_tls), .required = true },
};

int config_read(const char *text, size_t n, struct config *ret, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        const struct field_ctx ctx = { .what = "configuration" };
        struct config c = { 0 };
        int r = json_parse(ctx.what, text, n, &doc, err);

        if (r == 0)
                r = field_decode(&ctx, doc, fields, ARRAY_SIZE(fields), &c, err);
        if (r == 0)
                *ret = c;
        return r;
}
