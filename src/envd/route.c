/* route.c - which sandbox and port a request is for, by headers, host name or signature. Pure. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "envd/envd.h"
#include "envd/query.h"
#include "envd/text.h"
#include "http/http.h"

static int take_id(char dst[ID_TEXT], const char *s, size_t n) {
        if (n == 0 || n >= ID_TEXT || strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789") < n)
                return -EINVAL;
        memcpy(dst, s, n);
        dst[n] = '\0';
        return 0;
}

static int take_port(const char *s, uint16_t *ret) {
        uint64_t v;

        if (str_to_u64(s, UINT16_MAX, &v) < 0 || v == 0)
                return -EINVAL;
        *ret = (uint16_t) v;
        return 0;
}

/* Hosts that say nothing about a sandbox, so that headers may. */
static bool is_neutral(const char *host) {
        return str_eq(host, "localhost") || str_has_prefix(host, "sandbox.") || host[0] == '[' ||
               host[strspn(host, "0123456789.")] == '\0';
}

static int by_label(const char *host, char id[ID_TEXT], uint16_t *ret_port) {
        size_t digits = strspn(host, "0123456789"), n = strcspn(host, ".");
        char port[8];

        if (digits == 0 || host[digits] != '-' || host[n] != '.')
                return 0;
        if (digits >= sizeof(port))
                return -EINVAL;
        memcpy(port, host, digits);
        port[digits] = '\0';
        return take_port(port, ret_port) < 0 || take_id(id, host + digits + 1, n - digits - 1) < 0 ? -EINVAL : 1;
}

int envd_route(const struct http_head *head, char id[ID_TEXT], uint16_t *ret_port) {
        const char *by_id = http_header(head, "E2b-Sandbox-Id", NULL),
                   *port = http_header(head, "E2b-Sandbox-Port", NULL);

        if (!is_neutral(head->host))
                return by_label(head->host, id, ret_port);
        if (!by_id)
                return 0;
        *ret_port = ENVD_PORT;
        return take_id(id, by_id, strlen(by_id)) < 0 || (port && take_port(port, ret_port) < 0) ? -EINVAL : 1;
}

bool envd_is_signed(const struct http_head *head, const char *token) {
        struct query q;

        return str_eq(head->path, "/files") && head->query && envd_query_read(head->query, &q) == 0 &&
               envd_query_is_signed(&q, envd_query_op(head->method), token);
}
