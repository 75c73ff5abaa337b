/* limits.h - every limit of src/envd. docs/internals/envd.md says why each is what it is. */
#pragma once

enum {
        ENVD_CALLS = 256,            /* requests at once for one sandbox */
        ENVD_RELAUNCHES = 3,         /* of a launcher that was killed, for one request */
        ENVD_MESSAGE = 4 << 20,      /* one message of a client, as JSON */
        ENVD_HELD = 256 << 20,       /* such messages in memory, of all clients */
        ENVD_REPLY = 32 << 20,       /* a listing of a directory, as JSON */
        ENVD_ENVELOPE = 5,           /* flag and length before a message of a stream */
        ENVD_AGENT_HIGH = 256 << 10, /* who writes to an agent should stop when so much waits to be sent, */
        ENVD_AGENT_LOW = 64 << 10,   /* and is told to go on at this */
        ENVD_AGENT_MAX = 8 << 20,    /* more than this waiting: the connection ends */
        ENVD_WINDOW = 256 << 10,     /* output of a command under way to us */
        ENVD_WORKERS = 16,           /* connections about files at once, for one sandbox, */
        ENVD_WATCHERS = 14,          /* for watches beside them, */
        ENVD_IDLE_WORKERS = 2,       /* and kept for the next request, */
        ENVD_IDLE_MS = 10 * 1000,    /* this long */
        ENVD_EVENTS = 4096,          /* changes kept for a watcher that is polled */
        ENVD_POLL_MS = 600 * 1000,   /* a watcher that nobody polls is forgotten */
        ENVD_PARTS = 1024,           /* files of one upload */
        ENVD_BOUNDARY = 70,          /* of a multipart body (RFC 2046) */
        ENVD_PART_HEAD = 8192,       /* header lines of one part */
        ENVD_PART_LINES = 16,        /* of them */
        ENVD_INFLATE = 32 << 10,     /* bytes made at once from a compressed body */
        ENVD_RELAY = 128 << 10,      /* bytes of a raw stream that wait for the slower side */
        ENVD_BEAT_S = 90,            /* silence after which a stream says that it lives, unless the client asks */
        ENVD_BEAT_MIN_S = 1,
        ENVD_BEAT_MAX_S = 3600,
        ENVD_UNARY_MS = 300 * 1000,         /* for an answer of the agent to a call that is no stream */
        ENVD_TIMEOUT_MAX_MS = 86400 * 1000, /* longest Connect-Timeout-Ms; a longer one is cut to it */
        ENVD_SIGNATURE = 48,                /* a signature's text, with its NUL */
        ENVD_TIME = 40,                     /* a time's text, with its NUL */
        ENVD_EXIT = 64,                     /* how a command ended, with its NUL */
        ENVD_MODE = 16,                     /* permissions, with all letters and the NUL */
};
#define ENVD_UPLOAD (64ull << 30) /* bytes of one upload, as sent and as unpacked */
