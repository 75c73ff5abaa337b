/* body.c - what chunk framing must keep to before llhttp reads it, and bodies on their way between evbuffers. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>

#include "base/err.h"
#include "base/own.h"
#include "http/parser.h"

enum { CHUNK_ALLOWANCE = 16 }; /* bytes of framing that any chunk may have; beyond, twice its size pays for more */

static bool is_hex(char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

int http_check_chunk_line(struct http_parser *p) {
        char *s = p->line.p;
        size_t n = 0;

        while (is_hex(s[n]))
                n++;
        /* A blank behind the size is grammar to some and not to others. */
        if (n == 0 || (s[n] != ';' && s[n] != '\r'))
                return http_refuse(p, 400, "bad chunk size");
        /* Extensions end here: they mean nothing to us, and llhttp 8.1 cannot read two with values. */
        p->excess += p->line.len + 2;
        s[n] = '\r';
        s[n + 1] = '\n';
        p->line.len = n + 2;
        return 0;
}

int http_check_excess(struct http_parser *p) {
        uint64_t paid = p->left > HTTP_CHUNK_EXCESS ? p->left : CHUNK_ALLOWANCE + 2 * p->left;

        p->excess -= p->excess < paid ? p->excess : (size_t) paid;
        return p->excess > HTTP_CHUNK_EXCESS ? http_refuse(p, 400, "more chunk framing than data") : 0;
}

int http_check_trailer(struct http_parser *p) {
        static const char *const framing[] = { "content-length", "transfer-encoding", "host", "connection", "trailer" };
        const char *s = p->line.p, *colon = memchr(s, ':', p->line.len);

        p->trailer_bytes += p->line.len;
        if (p->trailer_bytes > HTTP_TRAILER_BYTES || p->n_lines++ > HTTP_TRAILERS_MAX)
                return http_refuse(p, 431, "trailers too large");
        if (p->line.len == 2)
                return 0;
        if (!colon || !http_is_token(s, (size_t) (colon - s)))
                return http_refuse(p, 400, "bad trailer name");
        for (size_t i = 0; i < ARRAY_SIZE(framing); i++)
                if (strncasecmp(s, framing[i], (size_t) (colon - s)) == 0 && !framing[i][colon - s])
                        return http_refuse(p, 400, "trailer that belongs to a head");
        return 0;
}

int http_pull(struct http_parser *p, struct evbuffer *in, struct evbuffer *body, struct http_event *ret,
              struct err *err) {
        size_t total = 0;

        for (;;) {
                struct evbuffer_iovec v = { 0 };
                struct http_event ev;
                int r;

                (void) evbuffer_peek(in, -1, NULL, &v, 1);
                r = http_feed(p, v.iov_base, v.iov_len, &ev, err);
                if (r < 0)
                        return r;
                total += ev.used;
                if (evbuffer_drain(in, ev.used - ev.n) < 0 ||
                    (ev.n > 0 && evbuffer_remove_buffer(in, body, ev.n) != (int) ev.n))
                        return err_set(err, -ENOMEM, ERR_INTERNAL, "http body");
                if (ev.type != HTTP_EV_MORE || evbuffer_get_length(in) == 0) {
                        ev.used = total;
                        ev.data = NULL;
                        *ret = ev;
                        return 0;
                }
        }
}
