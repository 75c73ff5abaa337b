/* route.c - which sandbox and port a request is for, by headers, host name or signature. Pure. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "envd/envd.h"
#include "envd/query.h"
#include "envd/text.h"
#include "http/http.h"

/* An id may carry what old SDKs append to it: "-" and a client's id. */
static int take_id(char dst[ID_TEXT], const char *s, size_t n) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
        size_t own = strspn(s, letters), client = own < n && s[own] == '-' ? strspn(s + own + 1, letters) + 1 : 0;

        if (own == 0 || own >= ID_TEXT || client == 1 || own + client != n)
                return -EINVAL;
        memcpy(dst, s, own);
        dst[own] = '\0';
        return 0;
}

static int take_port(const char *s, uint16_t *ret) {
        uint64_t v;

        if (str_to_u64(s, UINT16_MAX, &v) < 0 || v == 0)
                return -EINVAL;
        *ret = (uint16_t) v;
        return 0;
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

        int r = by_label(head->host, id, ret_port);

        if (r != 0 || !by_id)
                return r;
        *ret_port = ENVD_PORT;
        return take_id(id, by_id, strlen(by_id)) < 0 || (port && take_port(port, ret_port) < 0) ? -EINVAL : 1;
}

bool envd_is_signed(const struct http_head *head, const char *token) {
        struct query q;

        return str_eq(head->path, "/files") && head->query && envd_query_read(head->query, &q) == 0 &&
               envd_query_is_signed(&q, envd_query_op(head->method), token);
}
