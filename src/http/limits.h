/* limits.h - every limit of the HTTP layer. docs/internals/http.md says why each is what it is. */
#pragma once

enum {
        HTTP_HEAD_MAX = 32 * 1024, /* bytes of a head: start line, header lines and the empty line */
        HTTP_LINE_MAX = 16 * 1024, /* bytes of one line of a head, without its CRLF */
        HTTP_HEADERS_MAX = 100,    /* header lines of a head */
        HTTP_HOST_MAX = 255,       /* bytes of a host name, without port */
        HTTP_CHUNK_LINE_MAX = 256, /* bytes of a chunk-size line, extensions included */
        HTTP_TRAILERS_MAX = 32,    /* trailer lines, which are checked and dropped */
        HTTP_TRAILER_BYTES = 8192, /* of all trailer lines together */
        HTTP_CHUNK_EXCESS = 16384, /* bytes of chunk framing beyond what the chunks' data justifies */
        HTTP_INTERIM_MAX = 8,      /* 1xx answers before the final one */

        HTTP_READ_HIGH = 64 * 1024,          /* a connection stops reading when so much waits to be looked at */
        HTTP_WRITE_HIGH = 256 * 1024,        /* a writer should stop when so much waits to be sent ... */
        HTTP_WRITE_LOW = 64 * 1024,          /* ... and is told to go on at this */
        HTTP_WRITE_MAX = 8 * 1024 * 1024,    /* more than this waiting: the connection ends */
        HTTP_MOVE_MIN = 4096,                /* fewer bytes are copied from buffer to buffer, not moved */
        HTTP_DISCARD_MAX = 256 * 1024,       /* of a body that nobody wants; then the connection ends */
        HTTP_LINGER_BYTES = 4 * 1024 * 1024, /* of what still comes after our last words */
        HTTP_BODY_DEFAULT = 1024 * 1024,     /* of a request, unless its handler allows more */
        HTTP_CONNS_DEFAULT = 4096,

        HTTP_IDLE_MS = 60 * 1000,  /* between requests */
        HTTP_HEAD_MS = 10 * 1000,  /* from the first byte of a head to its last */
        HTTP_READ_MS = 30 * 1000,  /* without a byte of the body that we are waiting for */
        HTTP_WRITE_MS = 30 * 1000, /* without the peer taking a byte */
        HTTP_LINGER_MS = 2 * 1000, /* for the peer to read our last words before the connection ends */
};
