/*
 * conn.h - one TCP connection of a sandbox: from accept to its record.
 *
 * Two legs (the sandbox's socket and ours to the world), a state, one function that changes it and a table of legal
 * moves. Owned by its sandbox's list while alive, by the egress process's list of dead ones afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/event_struct.h>

#include "base/addr.h"
#include "egress/record.h"
#include "policy/net.h"

struct dial;
struct dial_result;
struct egress;
struct pipe_pair;
struct sandbox;
struct tls_peek;
struct web;

enum conn_state {
        CONN_HELLO, /* accepted; name and port are allowed. The client's first bytes are awaited; nothing is dialled */
        CONN_DIAL,  /* the other leg is being made; what the client sends stays in its socket */
        CONN_SPEAK, /* both legs are up; whoever speaks first shows what this is */
        CONN_RELAY, /* checked: bytes go both ways, unseen */
        CONN_WEB,   /* HTTP, or TLS that is opened: web.c has both legs and judges each request */
        CONN_DEAD,  /* record sent, sockets closed; waits for the reaper */
        CONN_STATES,
};

enum { CONN_CLIENT, CONN_WORLD, CONN_LEGS };

/* A socket with edge-triggered events: what the kernel told and we have not used up. */
struct leg {
        struct event event;
        struct conn *conn;
        int fd;
        bool armed, readable, writable;
        bool eof;  /* it will send no more */
        bool shut; /* we told it that no more will come */
};

/* Bytes from leg i to the other one. */
struct flow {
        struct pipe_pair *pipe;
        size_t pending; /* in the pipe */
        uint64_t bytes; /* that went through */
};

struct conn {
        TAILQ_ENTRY(conn) link;
        struct egress *egress;
        struct sandbox *sandbox; /* NULL once dead */
        enum conn_state state;
        struct leg legs[CONN_LEGS];
        struct flow flows[CONN_LEGS];
        const char *name;    /* that the client asked for; NULL: it dialled an address. Borrowed from the book */
        struct addr address; /* literal: that one; otherwise the one that was dialled, when it is known */
        uint16_t port;
        const char *protocol;
        struct policy_net_verdict verdict;
        char event[RECORD_EVENT];
        struct dial *dial;
        struct tls_peek *peek;
        struct web *web;
        bool checked; /* first bytes are known and allowed */
        bool told;    /* a record with phase open was sent */
        bool parked;  /* something is to be done when its sandbox may go on */
        uint64_t begin_ns, moved_ms;
};

/* A connection was accepted: judges it, and makes a connection or resets it. Takes fd. */
void conn_accept(struct sandbox *s, int fd);
/* Ends it with its record. detail: NULL, or what was wrong on the way. reset: tell both sides by RST. */
void conn_end(struct conn *c, const char *detail, bool reset);
/* Ends it with a denial: a record with code and rule, and RST to both sides. */
void conn_deny(struct conn *c, const struct policy_net_verdict *v, const char *detail);
/* The same for what no policy rule says, such as a protocol or a budget. side: "sandbox", "floor", "budget" ... */
void conn_deny_code(struct conn *c, const char *code, const char *rule, const char *detail);
/* Would the policy of now still allow it? If not it is denied. */
void conn_judge_again(struct conn *c);
/* Its sandbox may go on. */
void conn_resume(struct conn *c);
/* Time-outs, and the record of a long connection. */
void conn_sweep(struct conn *c, uint64_t now_ms);
/* May n more bytes leave the sandbox? False: the budget would be overdrawn, and the connection was denied. */
bool conn_may_spend(struct conn *c, size_t n);
/* Without a record; for the reaper and the end of the process. */
void conn_free(struct conn *c);

/* Is this port one where only TLS and HTTP are due? */
bool conn_is_web_port(uint16_t port);
/* What the client is has been seen and is allowed. */
void conn_checked(struct conn *c);
/* From here on requests are judged one by one. */
void conn_web(struct conn *c, bool tls);

/* --- first.c --- */
/* Looks at what the client has sent. False: it must say more first. May end the connection. */
bool first_look(struct conn *c);
/* Both legs are up and nobody has said anything that was checked: whoever speaks decides. */
void first_speak(struct conn *c);

/* --- relay.c --- */
/* Moves bytes both ways as far as they go now. May end the connection. */
void relay_pump(struct conn *c);
/* Gives back pipes. */
void relay_done(struct conn *c);
