/* web_state.h - one seen connection, as web.c (client), web_world.c (the far side) and web_say.c (own answers) share
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/record.h"
#include "egress/web.h"
#include "http/http.h"
#include "policy/net.h"

struct bufferevent;
struct conn;
struct dial;
struct err;
struct sandbox;

enum web_state {
        WEB_HANDSHAKE, /* TLS with the client is being made; nothing was judged */
        WEB_HEAD,      /* between requests, or within the head of one */
        WEB_DIAL,      /* a request was allowed; the far side is being reached. The client is not read */
        WEB_EXCHANGE,  /* the request, its answer, or both are under way */
        WEB_RAW,       /* after 101: bytes go both ways, unseen */
        WEB_LAST,      /* our own last words are written; what the client still sends is dropped */
        WEB_STATES,
};

enum { WEB_METHOD = 24 };

struct web {
        struct conn *conn; /* owns this */
        enum web_state state;
        bool tls;
        int client_fd, world_fd; /* of the bufferevents, for SO_LINGER; -1: none */
        struct bufferevent *client, *world;
        struct http_parser *request, *response;
        struct dial *dial;
        bool fresh_world;   /* nothing was sent to it yet */
        bool request_done;  /* its last byte was taken */
        bool answer_begun;  /* its head went to the client */
        bool last_exchange; /* the connection ends after this answer */
        bool client_eof;    /* the client will send no more */
        enum http_body request_how, answer_how;
        size_t dropped;   /* WEB_LAST: bytes of the client that nobody looked at */
        uint64_t head_ms; /* since when this head is awaited; 0: nothing of it has come */
        /* the request under way */
        char event[RECORD_EVENT], method[WEB_METHOD], path[POLICY_NET_PATH], rule[POLICY_NET_RULE];
        unsigned minor;
        uint64_t begin_ns, out_before, in_before;
};

/* The only writer of w->state. */
void web_move(struct web *w, enum web_state next);
/* Before each turn of the loop (sandbox_end() ends it). False: the sandbox has to rest; web_resume() will come. */
bool web_turn_begin(struct web *w, uint64_t *ret_begin_ns);
/* Can more be written there? Less, the more connections its sandbox has. */
bool web_has_room(const struct web *w, struct bufferevent *to);
/* Reads on where there is something to read and room for it to go; stops reading where there is not. */
void web_flow(struct web *w);
/* The record of the request under way, which ends here. detail: NULL, or what went wrong. */
void web_note_end(struct web *w, const char *detail);
/* Looks at the client's bytes from the top of the loop, whether new ones come or not. */
void web_kick(struct web *w);
/* The answer is complete: the next request, or the end. */
void web_next(struct web *w);

/* --- the far side (web_world.c) --- */

/* The request in w->request was allowed: sends its head, dialling first if need be. */
void web_world_send(struct web *w);
/* Makes a bufferevent of a connected socket. Takes fd. */
int web_world_open(struct web *w, int fd, struct err *err);
void web_world_close(struct web *w, bool reset);
/* Looks at what has come meanwhile. */
void web_world_resume(struct web *w);

/* --- our own answers (web_say.c); each is the last on its connection --- */

/* 403 with the reason, and the record under the same event. */
void web_deny(struct web *w, const char *code, const char *rule, const char *side, const char *path,
              const char *detail);
/* 502: it was allowed, but did not work. If the answer has begun, both sides are reset instead. */
void web_fail(struct web *w, const char *problem);
/* The client's request cannot be read: status of the parser. */
void web_bad_request(struct web *w, unsigned status, const char *why);
