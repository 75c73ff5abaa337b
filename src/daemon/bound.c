/* bound.c - see bound.h. No sandbox can be reached yet: each is answered as one that does not run. */
#include "daemon/bound.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "http/server.h"
#include "json/json.h"

bool bound_serve(struct daemon *d, struct http_conn *c, const struct http_head *head) {
        const char *id = http_header(head, "e2b-sandbox-id", NULL);
        CLEANUP(json_freep) struct json *o = NULL;
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };

        (void) d;
        if (!id)
                return false;
        o = json_new_object();
        json_set_str(o, "sandboxId", id);
        json_set_str(o, "message", "The sandbox was not found");
        json_set_int(o, "code", 502);
        if (json_text(o, false, &text, &err) < 0)
                (void) http_reply(c, 502, NULL, NULL, 0, &err);
        http_add(&lines, "Content-Type", "application/json");
        http_add(&lines, "Access-Control-Allow-Origin", "*");
        if (text)
                (void) http_reply(c, 502, &lines, text, strlen(text), &err);
        buf_done(&lines);
        return true;
}
