/*
 * http_message.h - what must hold for any bytes, shared by the two fuzz targets of HTTP:
 * whole or byte by byte they give the same heads, the same body and the same verdict; and a message that was accepted,
 * written again the way a proxy writes it, is accepted again with the same body and nothing behind it.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "http/http.h"

enum { HTTP_MESSAGE_MAX = 8192 };

struct http_message {
        struct buf body;       /* of all messages */
        struct evbuffer *copy; /* the first message as a proxy would pass it on */
        size_t n_messages;
        bool refused, raw;
};

static void http_message_must(bool ok) {
        if (!ok)
                abort();
}

static enum http_body http_message_copy_head(struct http_message *m, const struct http_head *h, const char *method) {
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        struct err err = { 0 };
        enum http_body how;

        http_add_forwarded(&lines, h, NULL, h->upgrade);
        how = http_add_framing(&lines, h, 1);
        http_message_must(!lines.bad);
        if (method)
                http_message_must(http_write_response_head(m->copy, h->status, &lines, &err) == 0);
        else
                http_message_must(http_write_request_head(m->copy, h->method, h->target, &lines, &err) == 0);
        buf_done(&lines);
        return how;
}

/* Reads data in pieces of step bytes. */
static void http_message_read(const uint8_t *data, size_t size, size_t step, const char *method,
                              struct http_message *m) {
        CLEANUP(http_parser_freep) struct http_parser *p = NULL;
        enum http_body how = HTTP_BODY_NONE;
        struct http_event ev = { 0 };
        struct err err = { 0 };
        size_t at = 0;

        m->body = BUF_INIT(2 * HTTP_MESSAGE_MAX);
        m->copy = evbuffer_new();
        if (!m->copy || (method ? http_parser_new_response(&p, method, &err) : http_parser_new_request(&p, &err)) < 0)
                abort();
        while (at < size || (ev.type != HTTP_EV_MORE && ev.type != HTTP_EV_END)) {
                size_t n = size - at < step ? size - at : step;

                if (http_feed(p, data + at, n, &ev, &err) < 0) {
                        m->refused = true;
                        return;
                }
                http_message_must(ev.used <= n && ev.n <= ev.used && (ev.type != HTTP_EV_MORE || ev.used == n));
                at += ev.used;
                if (ev.type == HTTP_EV_HEAD && m->n_messages++ == 0)
                        how = http_message_copy_head(m, http_parser_head(p), method);
                if (ev.type == HTTP_EV_BODY) {
                        buf_add(&m->body, ev.data, ev.n);
                        if (m->n_messages == 1)
                                http_message_must(http_write_body(m->copy, how, ev.data, ev.n, &err) == 0);
                }
                if (ev.type != HTTP_EV_END)
                        continue;
                m->raw = http_parser_head(p)->upgrade || http_parser_head(p)->form == HTTP_FORM_AUTHORITY;
                if (m->n_messages == 1)
                        http_message_must(http_write_end(m->copy, how, &err) == 0);
                if (m->raw)
                        return;
                if (!method || http_parser_head(p)->interim)
                        http_parser_next(p, method);
                else if (at == size)
                        return;
        }
}

static void http_message_done(struct http_message *m) {
        buf_done(&m->body);
        evbuffer_free(m->copy);
}

/* method: of the request that a response answers; NULL: data are requests. */
static void http_message_check(const uint8_t *data, size_t size, const char *method) {
        struct http_message whole = { 0 }, bytes = { 0 }, again = { 0 };

        http_message_read(data, size, size > 0 ? size : 1, method, &whole);
        http_message_read(data, size, 1, method, &bytes);
        http_message_must(whole.refused == bytes.refused && whole.raw == bytes.raw &&
                          whole.n_messages == bytes.n_messages && whole.body.len == bytes.body.len &&
                          memcmp(buf_str(&whole.body), buf_str(&bytes.body), whole.body.len) == 0);
        if (!whole.refused && whole.n_messages == 1) {
                size_t n = evbuffer_get_length(whole.copy);

                http_message_read(evbuffer_pullup(whole.copy, -1), n, n > 0 ? n : 1, method, &again);
                http_message_must(!again.refused && again.n_messages == 1 && again.body.len == whole.body.len &&
                                  memcmp(buf_str(&again.body), buf_str(&whole.body), again.body.len) == 0);
                http_message_done(&again);
        }
        http_message_done(&whole);
        http_message_done(&bytes);
}
