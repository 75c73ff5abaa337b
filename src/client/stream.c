/* stream.c - Connect's messages: a flag, a length, JSON. Pure. */
#include <errno.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/err.h"
#include "base/rd.h"
#include "base/wr.h"
#include "client/state.h"
#include "json/json.h"

enum { FLAG_END = 2 };

int stream_next(struct evbuffer *in, enum stream_event *ret_event, struct json **ret, struct err *err) {
        uint8_t head[CLIENT_ENVELOPE], flag;
        const char *text;
        struct rd r;
        uint32_t n;

        *ret_event = STREAM_MORE;
        *ret = NULL;
        if (evbuffer_copyout(in, head, sizeof(head)) < (ev_ssize_t) sizeof(head))
                return 0;
        r = rd_from(head, sizeof(head));
        flag = rd_u8(&r);
        n = rd_u32(&r);
        if ((flag != 0 && flag != FLAG_END) || n > CLIENT_MESSAGE_MAX)
                return err_set(err, -EPROTO, ERR_PEER, "the server sends a stream that is none");
        if (evbuffer_get_length(in) - CLIENT_ENVELOPE < n)
                return 0;
        (void) evbuffer_drain(in, CLIENT_ENVELOPE);
        *ret_event = flag == FLAG_END ? STREAM_END : STREAM_MESSAGE;
        if (n == 0)
                text = "{}";
        else
                text = (const char *) evbuffer_pullup(in, (ev_ssize_t) n);
        if (!text || json_parse("message", text, n ? n : 2, ret, err) < 0 || !json_is_object(*ret)) {
                *ret = json_free(*ret);
                return err_set(err, -EPROTO, ERR_PEER, "the server sends a message that is no JSON object");
        }
        (void) evbuffer_drain(in, n);
        if (flag == FLAG_END) {
                struct json *error = json_share(json_get(*ret, "error"));

                (void) json_free(*ret);
                *ret = error;
        }
        return 0;
}

void stream_put(struct evbuffer *to, const char *text) {
        uint8_t head[CLIENT_ENVELOPE];
        struct wr w = wr_to(head, sizeof(head));

        wr_u8(&w, 0);
        wr_u32(&w, (uint32_t) strlen(text));
        (void) evbuffer_add(to, head, sizeof(head));
        (void) evbuffer_add(to, text, strlen(text));
}
