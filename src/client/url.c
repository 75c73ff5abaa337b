/* url.c - where a server is, and targets of requests. Pure. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/host.h"
#include "base/own.h"
#include "base/str.h"
#include "client/client.h"

static const struct {
        const char *prefix;
        enum client_scheme scheme;
        uint16_t port;
} schemes[] = { { "http://", CLIENT_HTTP, 80 }, { "https://", CLIENT_HTTPS, 443 }, { "unix:", CLIENT_UNIX, 80 } };

static int bad(struct err *err, const char *text, const char *why) {
        return err_set(err, -EINVAL, ERR_INVALID, "server '%.100s': %s", text, why);
}

static int parse_host(const char *text, const char *rest, struct client_url *u, struct err *err) {
        char host[HTTP_HOST_MAX + 8], canonical[HOST_NAME];
        size_t n = strcspn(rest, "/");
        uint16_t port = 0;

        if (rest[n] == '/' && rest[n + 1])
                return bad(err, text, "a path cannot be given; http://HOST:PORT is expected");
        if (n == 0 || n >= sizeof(host))
                return bad(err, text, "has no host");
        memcpy(host, rest, n);
        host[n] = '\0';
        if (http_parse_host(host, u->host, &port) < 0)
                return bad(err, text, "is no host and port");
        if (u->scheme == CLIENT_HTTPS && host_canonical(u->host, strlen(u->host), canonical) < 0)
                return bad(err, text, "https needs a host name: certificates are checked by name");
        u->port = port ? port : u->port;
        (void) snprintf(u->text, sizeof(u->text), "%s%.255s:%u", u->scheme == CLIENT_HTTPS ? "https://" : "http://",
                        u->host, (unsigned) u->port);
        return 0;
}

int client_url_parse(const char *text, struct client_url *ret, struct err *err) {
        for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
                const char *rest = text + strlen(schemes[i].prefix);
                struct client_url u = { .scheme = schemes[i].scheme, .port = schemes[i].port };
                int r = 0;

                if (!str_has_prefix(text, schemes[i].prefix))
                        continue;
                if (u.scheme != CLIENT_UNIX) {
                        r = parse_host(text, rest, &u, err);
                } else {
                        rest += str_has_prefix(rest, "//") ? 2 : 0;
                        (void) str_copy(u.host, sizeof(u.host), "localhost");
                        (void) snprintf(u.text, sizeof(u.text), "unix:%.108s", rest);
                        if (*rest != '/' || str_copy(u.path, sizeof(u.path), rest) < 0)
                                r = bad(err, text, "unix: needs an absolute path of at most 107 characters");
                }
                if (r == 0)
                        *ret = u;
                return r;
        }
        return bad(err, text, "must begin with http://, https:// or unix:");
}

bool client_is_name(const char *s) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");

        return n > 0 && n < CLIENT_NAME_TEXT && !s[n];
}

void client_query_add(struct buf *target, const char *name, const char *value) {
        buf_addf(target, "%c%s=", target->len > 0 && strchr(buf_str(target), '?') ? '&' : '?', name);
        for (; *value; value++)
                if ((*value >= 'a' && *value <= 'z') || (*value >= 'A' && *value <= 'Z') ||
                    (*value >= '0' && *value <= '9') || strchr("-._~/", *value))
                        buf_add(target, value, 1);
                else
                        buf_addf(target, "%%%02X", (unsigned char) *value);
}
