/* events.c - server-sent events (text/event-stream): only what our servers send of it, `id`, `event` and `data`. Pure.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "client/client.h"
#include "json/json.h"

/* "name: value" or "name:value"; NULL if it is another. */
static const char *value_of(const char *line, const char *name) {
        size_t n = strlen(name);

        if (strncmp(line, name, n) != 0 || line[n] != ':')
                return NULL;
        return line[n + 1] == ' ' ? line + n + 2 : line + n + 1;
}

int client_event_next(struct evbuffer *in, struct json **ret, struct err *err) {
        CLEANUP(json_freep) struct json *event = NULL;
        struct evbuffer_ptr end;
        bool whole = false;

        *ret = NULL;
        /* A whole event, up to its empty line, must be there before anything of it is taken. */
        while (!whole) {
                struct buf data = BUF_INIT(CLIENT_EVENT_MAX);
                int r = 0;

                end = evbuffer_search(in, "\n\n", 2, NULL);
                if (end.pos < 0) {
                        if (evbuffer_get_length(in) > CLIENT_EVENT_MAX)
                                return err_set(err, -EPROTO, ERR_PEER, "the server sends an event that does not end");
                        return 0;
                }
                for (;;) {
                        AUTO_FREE char *line = evbuffer_readln(in, NULL, EVBUFFER_EOL_LF);
                        const char *value;

                        if (!line || !*line)
                                break;
                        value = value_of(line, "data");
                        if (value)
                                buf_addf(&data, "%s%s", data.len > 0 ? "\n" : "", value);
                }
                if (data.bad || (data.len > 0 && json_parse("event", buf_str(&data), data.len, &event, err) < 0))
                        r = err_set(err, -EPROTO, ERR_PEER, "the server sends an event that is no JSON");
                whole = event != NULL;
                buf_done(&data);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(event);
        return 1;
}
