/*
 * proxy.c - see proxy.h.
 *
 * An HTTP proxy is answered by the strict parser of src/http; of SOCKS5 (RFC 1928, 1929) we speak CONNECT with no
 * authentication or with user and password. Bytes behind the proxy's own last word are never touched.
 */
#include "egress/proxy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/rd.h"
#include "base/str.h"
#include "base/wr.h"
#include "egress/config.h"
#include "http/http.h"

enum {
        SOCKS_VERSION = 5,
        SOCKS_NONE = 0,
        SOCKS_PASSWORD = 2,
        SOCKS_CONNECT = 1,
        SOCKS_V4 = 1,
        SOCKS_NAME = 3,
        SOCKS_V6 = 4,
        SOCKS_AUTH_VERSION = 1,
        TARGET_TEXT = HOST_NAME + 16,
        STATUS_OK = 200,
        STATUS_END = 300,
};

enum state { HTTP_ANSWER, SOCKS_METHOD, SOCKS_AUTH, SOCKS_REPLY };

struct proxy {
        enum state state;
        const struct config *config;
        char name[HOST_NAME];
        struct addr address;
        uint16_t port;
};

static void http_say(const struct proxy *x, struct buf *out) {
        const struct config *c = x->config;
        char target[TARGET_TEXT], text[ADDR_TEXT];

        if (!x->name[0])
                addr_text(&x->address, text);
        (void) snprintf(target, sizeof(target), x->name[0] || x->address.family == ADDR_V4 ? "%s:%u" : "[%s]:%u",
                        x->name[0] ? x->name : text, x->port);
        buf_addf(out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", target, target);
        if (c->proxy.user[0]) {
                char both[2 * CONFIG_SECRET], code[STR_BASE64(sizeof(both))];
                int n = snprintf(both, sizeof(both), "%s:%s", c->proxy.user, c->proxy.password);

                str_base64(code, both, (size_t) n);
                buf_addf(out, "Proxy-Authorization: Basic %s\r\n", code);
        }
        buf_addf(out, "\r\n");
}

static enum proxy_step http_hear(const void *p, size_t n, size_t *used, struct err *err) {
        /* The parser keeps what it has seen, so each look starts anew with all the bytes: answers are short. */
        CLEANUP(http_parser_freep) struct http_parser *parser = NULL;
        struct http_event ev;
        unsigned status;

        if (http_parser_new_response(&parser, "CONNECT", err) < 0 || http_feed(parser, p, n, &ev, err) < 0)
                return PROXY_FAILED;
        if (ev.type != HTTP_EV_HEAD)
                return PROXY_MORE;
        status = http_parser_head(parser)->status;
        if (status < STATUS_OK || status >= STATUS_END) {
                (void) err_set(err, -ECONNREFUSED, ERR_PEER, "proxy answers %u", status);
                return PROXY_FAILED;
        }
        *used = ev.used;
        return PROXY_OPEN;
}

static void socks_say_method(const struct proxy *x, struct buf *out) {
        static const uint8_t none[] = { SOCKS_VERSION, 1, SOCKS_NONE };
        static const uint8_t both[] = { SOCKS_VERSION, 2, SOCKS_NONE, SOCKS_PASSWORD };

        if (x->config->proxy.user[0])
                buf_add(out, both, sizeof(both));
        else
                buf_add(out, none, sizeof(none));
}

static void say_short(struct wr *w, const char *s) {
        wr_u8(w, (uint8_t) strlen(s));
        wr_bytes(w, s, strlen(s));
}

static void socks_say_auth(const struct proxy *x, struct buf *out) {
        uint8_t bytes[2 * CONFIG_SECRET + 4];
        struct wr w = wr_to(bytes, sizeof(bytes));

        wr_u8(&w, SOCKS_AUTH_VERSION);
        say_short(&w, x->config->proxy.user);
        say_short(&w, x->config->proxy.password);
        buf_add(out, bytes, w.len);
}

static void socks_say_connect(const struct proxy *x, struct buf *out) {
        uint8_t bytes[HOST_NAME + 8];
        struct wr w = wr_to(bytes, sizeof(bytes));
        bool v4 = x->address.family == ADDR_V4;

        wr_u8(&w, SOCKS_VERSION);
        wr_u8(&w, SOCKS_CONNECT);
        wr_u8(&w, 0);
        if (x->name[0]) {
                wr_u8(&w, SOCKS_NAME);
                say_short(&w, x->name);
        } else {
                wr_u8(&w, v4 ? SOCKS_V4 : SOCKS_V6);
                wr_bytes(&w, x->address.b, v4 ? 4 : 16);
        }
        wr_u16(&w, x->port);
        buf_add(out, bytes, w.len);
}

static enum proxy_step refuse(struct err *err, const char *what, unsigned v) {
        (void) err_set(err, -ECONNREFUSED, ERR_PEER, "proxy: %s %u", what, v);
        return PROXY_FAILED;
}

static enum proxy_step socks_method(struct proxy *x, struct rd *r, struct buf *out, struct err *err) {
        uint8_t version = rd_u8(r), method = rd_u8(r);

        if (r->bad)
                return PROXY_MORE;
        if (version != SOCKS_VERSION)
                return refuse(err, "SOCKS version", version);
        if (method == SOCKS_PASSWORD && x->config->proxy.user[0]) {
                socks_say_auth(x, out);
                x->state = SOCKS_AUTH;
        } else if (method == SOCKS_NONE) {
                socks_say_connect(x, out);
                x->state = SOCKS_REPLY;
        } else {
                return refuse(err, "no common method of authentication:", method);
        }
        return PROXY_SAY;
}

static enum proxy_step socks_auth(struct proxy *x, struct rd *r, struct buf *out, struct err *err) {
        uint8_t version = rd_u8(r), status = rd_u8(r);

        if (r->bad)
                return PROXY_MORE;
        if (version != SOCKS_AUTH_VERSION || status != 0)
                return refuse(err, "user or password refused:", status);
        socks_say_connect(x, out);
        x->state = SOCKS_REPLY;
        return PROXY_SAY;
}

static enum proxy_step socks_reply(struct rd *r, struct err *err) {
        uint8_t version = rd_u8(r), status = rd_u8(r), zero = rd_u8(r), type = rd_u8(r);
        size_t n = type == SOCKS_V4 ? 4 : type == SOCKS_V6 ? 16 : type == SOCKS_NAME ? rd_u8(r) : 0;

        (void) zero;
        if (!r->bad && (version != SOCKS_VERSION || status != 0))
                return refuse(err, "connection refused:", status);
        if (!r->bad && n == 0)
                return refuse(err, "address type", type);
        (void) rd_bytes(r, n);
        (void) rd_u16(r);
        return r->bad ? PROXY_MORE : PROXY_OPEN;
}

int proxy_new(const struct config *c, const char *name, const struct addr *address, uint16_t port, struct buf *out,
              struct proxy **ret, struct err *err) {
        struct proxy *x = calloc(1, sizeof(*x));

        if (!x)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "proxy: out of memory");
        *x = (struct proxy){ .config = c, .port = port };
        if (address)
                x->address = *address;
        else
                (void) str_copy(x->name, sizeof(x->name), name);
        x->state = c->proxy.kind == CONFIG_PROXY_HTTP ? HTTP_ANSWER : SOCKS_METHOD;
        if (x->state == HTTP_ANSWER)
                http_say(x, out);
        else
                socks_say_method(x, out);
        *ret = x;
        return 0;
}

struct proxy *proxy_free(struct proxy *p) {
        free(p);
        return NULL;
}

enum proxy_step proxy_feed(struct proxy *x, const void *p, size_t n, struct buf *out, size_t *used, struct err *err) {
        struct rd r = rd_from(p, n);
        enum proxy_step step = PROXY_FAILED;

        *used = 0;
        switch (x->state) {
        case HTTP_ANSWER:
                return http_hear(p, n, used, err);
        case SOCKS_METHOD:
                step = socks_method(x, &r, out, err);
                break;
        case SOCKS_AUTH:
                step = socks_auth(x, &r, out, err);
                break;
        case SOCKS_REPLY:
                step = socks_reply(&r, err);
                break;
        }
        if (step == PROXY_SAY || step == PROXY_OPEN)
                *used = n - r.left;
        return step;
}
