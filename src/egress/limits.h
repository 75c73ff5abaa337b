/* limits.h - every limit of the egress process. docs/internals/egress.md says why each is what it is. */
#pragma once

enum {
        EGRESS_SANDBOXES = 1024,
        EGRESS_OPEN_MAX = 1024,       /* connections of one sandbox at a time, whatever its budget says */
        EGRESS_DNS_STREAMS = 16,      /* DNS over TCP: connections of one sandbox */
        EGRESS_DNS_RATE = 500,        /* queries of one sandbox per second ... */
        EGRESS_DNS_BURST = 1000,      /* ... and at once */
        EGRESS_DNS_TTL_S = 60,        /* of the fake addresses; they never change */
        EGRESS_ACCEPTS_PER_TURN = 4,  /* of one listener before others have their turn */
        EGRESS_QUERIES_PER_TURN = 16, /* of one DNS socket */
        EGRESS_TURN_BYTES = 1 << 20,  /* of one direction of one connection */

        EGRESS_PIPES = 128,              /* of all sandboxes: 128 * 64 pages are half of what Linux gives one user */
        EGRESS_PIPES_PER_SANDBOX = 32,   /* with bytes in them; beyond that bytes are copied */
        EGRESS_SPLICE_BYTES = 256 << 10, /* one call; what a pipe holds if the kernel gives us the pages ... */
        EGRESS_SPLICE_LEAST = 64 << 10,  /* ... and what is still better than copying */
        EGRESS_COPY_BYTES = 16 << 10,    /* one call without a pipe */

        EGRESS_WEB_BYTES =
                16 << 20, /* of seen connections of one sandbox that wait to be written, shared by them, ... */
        EGRESS_WEB_BYTES_LEAST = 16 << 10, /* ... but at least so much for each ... */
        EGRESS_WEB_BYTES_MOST = 256 << 10, /* ... and at most */

        EGRESS_HELLO_MS = 10 * 1000,         /* from accept to a whole ClientHello or request head */
        EGRESS_DIAL_MS = 10 * 1000,          /* for one address */
        EGRESS_DIAL_TRIES = 4,               /* addresses of a name that are tried */
        EGRESS_IDLE_MS = 15 * 60 * 1000,     /* without a byte in either direction */
        EGRESS_HALF_IDLE_MS = 2 * 60 * 1000, /* the same when one direction has ended */
        EGRESS_LONG_MS = 10 * 1000,          /* a connection that lives so long has a record at once */
        EGRESS_SWEEP_US = 250 * 1000,        /* how often time-outs are looked at */

        EGRESS_RECORDS_WAITING = 1024,   /* nothing is accepted while so many records wait for the supervisor */
        EGRESS_RECORDS_PER_SANDBOX = 64, /* the same for one sandbox and its own */
        EGRESS_REPEATS = 32,             /* different denials of one sandbox that are counted at a time */
        EGRESS_REPEAT_MS = 1000,         /* for so long repeated denials are counted instead of told */

        EGRESS_SHARE_US = 2000,      /* window in which the time spent for a sandbox is measured */
        EGRESS_SHARE_HEAVY_US = 500, /* a sandbox that used more of it goes behind others ... */
        EGRESS_CONTENDED_MS = 10,    /* ... and rests, if there was another one in this time, ... */
        EGRESS_REST_US = 1000,       /* ... for so long */
};

/* Order of events in the loop: a later class runs only when nothing of the earlier ones is left. LIGHT is in the
 * middle, where libevent puts what nobody has put elsewhere. */
enum { EGRESS_FIRST, EGRESS_LIGHT, EGRESS_HEAVY, EGRESS_PRIORITIES };
