/*
 * multipart.h - multipart/form-data, strictly and as it comes: no preamble, no folded lines, no nested parts, CRLF
 * only. What two readers might understand differently is refused. Bytes in, events out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "envd/limits.h"

struct err;
struct evbuffer;

enum multipart_event {
        MULTIPART_MORE,     /* more bytes are needed */
        MULTIPART_PART,     /* a part begins: name, filename */
        MULTIPART_DATA,     /* bytes of it were moved to `data` */
        MULTIPART_PART_END, /* it is whole */
        MULTIPART_END,      /* that was the last one; nothing may follow but one CRLF */
};

struct multipart {
        int state;
        char mark[ENVD_BOUNDARY + 5]; /* CRLF, two dashes, boundary */
        size_t n_mark;
        char name[ENVD_PART_HEAD], filename[ENVD_PART_HEAD]; /* of the part under way */
        bool has_filename;
};

/* content_type: the header of the request. -EINVAL. */
int multipart_init(struct multipart *m, const char *content_type, struct err *err);
/* One event. To be called again until it says MULTIPART_MORE; then with more bytes in `in`. -EPROTO, -EMSGSIZE: final.
 */
int multipart_next(struct multipart *m, struct evbuffer *in, struct evbuffer *data, enum multipart_event *ret,
                   struct err *err);
/* There will be no more bytes. -EPROTO: cut short. */
int multipart_finish(const struct multipart *m, struct evbuffer *in, struct err *err);
