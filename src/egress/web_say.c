/* web_say.c - the answers that are ours and not the far side's: see web_state.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "egress/conn.h"
#include "egress/egress.h"
#include "egress/sandbox.h"
#include "egress/web_state.h"
#include "json/json.h"

enum { FORBIDDEN = 403, BAD_GATEWAY = 502 };

static const struct {
        const char *code, *reason;
} reasons[] = {
        { "net.name_not_allowed", "this host is not allowed by the policy of the sandbox" },
        { "net.address_not_allowed", "this address is not allowed by the policy of the sandbox" },
        { "net.port_not_allowed", "this port is not allowed by the policy of the sandbox" },
        { "net.method_not_allowed", "this method is not allowed for this host by the policy of the sandbox" },
        { "net.path_not_allowed", "this path is not allowed for this host by the policy of the sandbox" },
        { "net.sni_mismatch", "the request names another host than the connection" },
        { "net.protocol_not_allowed", "this protocol is not allowed here" },
        { "net.private_address", "the name leads to a private address" },
        { "net.metadata", "the name leads to a metadata service" },
        { "net.budget", "the network budget of the sandbox is spent" },
};

static const char *reason_of(const char *code) {
        for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
                if (str_eq(reasons[i].code, code))
                        return reasons[i].reason;
        return "not allowed by the policy of the sandbox";
}

/* Writes a whole answer and begins to end the connection. */
static void say(struct web *w, unsigned status, const struct json *body, const char *denied, const char *event) {
        AUTO_FREE char *text = NULL;
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        struct evbuffer *out = bufferevent_get_output(w->client);
        struct err err = { 0 };
        int r = json_text(body, false, &text, &err);

        web_world_close(w, true);
        if (denied)
                http_addf(&lines, "X-Gabion-Denied", "%s; event=%s", denied, event);
        http_add(&lines, "Content-Type", "application/json");
        http_add(&lines, "Cache-Control", "no-store");
        http_add(&lines, "Connection", "close");
        if (r == 0) {
                http_addf(&lines, "Content-Length", "%zu", strlen(text) + 1);
                r = http_write_response_head(out, status, &lines, &err);
        }
        /* A client that asked with HEAD takes the first byte of a body for the next answer. */
        if (r == 0 && !str_eq(w->method, "HEAD"))
                (void) evbuffer_add_printf(out, "%s\n", text);
        buf_done(&lines);
        if (r < 0) {
                conn_end(w->conn, "out of memory", true);
                return;
        }
        web_move(w, WEB_LAST);
        w->conn->moved_ms = egress_now_ms();
        web_flow(w);
}

void web_deny(struct web *w, const char *code, const char *rule, const char *side, const char *path,
              const char *detail) {
        struct conn *c = w->conn;
        CLEANUP(json_freep) struct json *body = json_new_object();
        char event[RECORD_EVENT];
        struct record r = { .kind = "http",
                            .name = c->name,
                            .address = c->address,
                            .port = c->port,
                            .protocol = c->protocol,
                            .code = code,
                            .rule = rule,
                            .side = side,
                            .method = w->method,
                            .path = path,
                            .detail = detail };

        sandbox_note(c->sandbox, &r, event);
        if (w->answer_begun) {
                conn_end(c, "denied while an answer was under way", true);
                return;
        }
        json_set_str(body, "code", code);
        json_set_str(body, "reason", reason_of(code));
        json_set_str(body, "rule", rule);
        json_set_str(body, "event", event);
        json_set_bool(body, "retry", false);
        json_set_str(body, "hint", "do not retry; ask the operator to allow it");
        say(w, FORBIDDEN, body, code, event);
}

void web_fail(struct web *w, const char *problem) {
        CLEANUP(json_freep) struct json *body = json_new_object();

        web_note_end(w, problem);
        if (w->answer_begun) {
                conn_end(w->conn, problem, true);
                return;
        }
        json_set_str(body, "code", "upstream.failed");
        json_set_str(body, "reason", problem);
        json_set_str(body, "event", w->event);
        say(w, BAD_GATEWAY, body, NULL, NULL);
}

void web_bad_request(struct web *w, unsigned status, const char *why) {
        CLEANUP(json_freep) struct json *body = json_new_object();
        struct conn *c = w->conn;
        char event[RECORD_EVENT];
        struct record r = { .kind = "http",
                            .name = c->name,
                            .address = c->address,
                            .port = c->port,
                            .protocol = c->protocol,
                            .code = "net.protocol_not_allowed",
                            .rule = "floor:http",
                            .side = "floor",
                            .detail = why };

        sandbox_note(c->sandbox, &r, event);
        if (w->answer_begun) {
                conn_end(c, why, true);
                return;
        }
        json_set_str(body, "code", r.code);
        json_set_str(body, "reason", why);
        json_set_str(body, "rule", r.rule);
        json_set_str(body, "event", event);
        json_set_bool(body, "retry", false);
        json_set_str(body, "hint", "do not retry; this is no request that every server reads in the same way");
        say(w, status, body, r.code, event);
}
