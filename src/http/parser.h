/* parser.h - the parser's inside, for the files of this component that share it. Private. */
#pragma once

#include <llhttp.h>

#include "base/buf.h"
#include "http/http.h"

/* Where the next byte belongs. Only parse.c moves from one to another. */
enum parse_state {
        PARSE_HEAD,
        PARSE_BODY,       /* of a known length, or until the connection ends */
        PARSE_CHUNK_LINE, /* size and extensions */
        PARSE_CHUNK_DATA,
        PARSE_CHUNK_END, /* the CRLF behind the data */
        PARSE_TRAILER,
        PARSE_END,
        PARSE_BAD, /* sticky */
};

/* A header line as places in `raw`: pointers would not survive its growth. */
struct parse_span {
        uint16_t name, name_end, value, value_end;
};

struct http_parser {
        llhttp_t ll;
        enum parse_state state;
        bool response, to_head, to_connect; /* what is parsed, and what it answers */
        bool announced;                     /* HTTP_EV_HEAD was given */
        bool complete;                      /* llhttp says that the message is whole */
        bool has_chunk;                     /* llhttp has read a chunk-size line */
        unsigned status;                    /* to answer, once bad */
        const char *why;
        unsigned n_interim;
        struct buf raw;  /* the head; does not move while llhttp reads it */
        struct buf text; /* path and query */
        struct buf line; /* of chunk framing or trailers */
        size_t line_start;
        unsigned n_lines;
        uint8_t last;  /* byte of the line before this one */
        uint64_t left; /* of the body, or of this chunk */
        size_t excess; /* framing that no body pays for */
        size_t trailer_bytes;
        const char *data; /* what llhttp called body in this call */
        size_t n_data;
        struct parse_span spans[HTTP_HEADERS_MAX];
        struct http_head head;
};

/* Makes the parser bad for good and returns -1. why: our words only, for logs and for the peer. */
int http_refuse(struct http_parser *p, unsigned status, const char *why);

/* head.c: the rules that llhttp leaves to us. All return 0, or -1 after http_refuse(). */
/* The start line in raw[0..n), before llhttp sees it. */
int http_check_start(struct http_parser *p, size_t n);
/* All header lines are there: fills and checks p->head. */
int http_check_head(struct http_parser *p);
/* Is this a token (RFC 9110, 5.6.2)? */
bool http_is_token(const char *s, size_t n);
/* Bytes that a request target may have. */
bool http_is_target(const char *s, size_t n);

/* body.c */
/* The chunk-size line, before llhttp sees it: cuts the extensions off. */
int http_check_chunk_line(struct http_parser *p);
/* The chunk's size is known: does framing stay in proportion? */
int http_check_excess(struct http_parser *p);
/* A trailer line, before llhttp sees it. */
int http_check_trailer(struct http_parser *p);
