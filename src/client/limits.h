/* limits.h - every limit of src/client. */
#pragma once

enum {
        CLIENT_URL_TEXT = 320,
        CLIENT_KEY_TEXT = 128,
        CLIENT_TOKEN_TEXT = 256,
        CLIENT_NAME_TEXT = 64,          /* of a sandbox, or its id */
        CLIENT_REPLY_MAX = 32 << 20,    /* one whole answer in memory */
        CLIENT_VALUES = 500 * 1000,     /* of JSON in it: a directory of 40,000 files */
        CLIENT_MESSAGE_MAX = 4 << 20,   /* one message of a stream */
        CLIENT_ENVELOPE = 5,            /* flag and length before it */
        CLIENT_EVENT_MAX = 256 << 10,   /* one event of an event stream */
        CLIENT_WRITE_HIGH = 256 << 10,  /* a writer should stop when so much waits to be sent */
        CLIENT_DIAL_MS = 10 * 1000,     /* to connect, TLS included */
        CLIENT_ANSWER_MS = 150 * 1000,  /* without a byte of an answer: creates may wait in a queue for long */
        CLIENT_BEAT_S = 10,             /* how often a silent stream has to show that it lives */
        CLIENT_BEAT_MS = 35 * 1000,     /* without that sign */
        CLIENT_INPUT_BEAT_S = 10,       /* how often we show it; the server waits 30 s */
        CLIENT_INPUT_PIECE = 48 << 10,  /* input in one message */
        CLIENT_AGAIN_MS = 200,          /* between attempts to follow a command again */
        CLIENT_AGAIN_MAX_MS = 5 * 1000, /* for all of them */
};
