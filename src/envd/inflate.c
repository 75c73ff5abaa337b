/* inflate.c - gzip from strangers. Memory is fixed; what it unpacks to is for the caller to count. See inflate.h. */
#include "envd/inflate.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <zlib.h>

#include <event2/buffer.h>

#include "base/err.h"
#include "envd/limits.h"

enum { GZIP_ONLY = 16, PIECE = 16 << 10 };

struct inflate {
        z_stream z;
        bool open;   /* zlib's part is there */
        bool inside; /* a member has begun and not ended */
        bool any;    /* there was a member */
};

int inflate_new(struct inflate **ret, struct err *err) {
        struct inflate *z = calloc(1, sizeof(*z));

        if (z)
                z->open = inflateInit2(&z->z, GZIP_ONLY + MAX_WBITS) == Z_OK;
        if (!z || !z->open) {
                (void) inflate_free(z);
                return err_set(err, -ENOMEM, ERR_INTERNAL, "inflate");
        }
        *ret = z;
        return 0;
}

struct inflate *inflate_free(struct inflate *z) {
        if (z && z->open)
                (void) inflateEnd(&z->z);
        free(z);
        return NULL;
}

int inflate_some(struct inflate *z, struct evbuffer *in, struct evbuffer *out, struct err *err) {
        static unsigned char made[ENVD_INFLATE]; /* one loop, one thread */
        size_t have = evbuffer_get_contiguous_space(in), n_made, n_taken;
        int r;

        have = have < PIECE ? have : PIECE;
        if (have == 0 && !z->inside)
                return 0;
        z->z.next_in = evbuffer_pullup(in, (ev_ssize_t) have);
        z->z.avail_in = (uInt) have;
        z->z.next_out = made;
        z->z.avail_out = sizeof(made);
        r = inflate(&z->z, Z_NO_FLUSH);
        if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR) /* the last: nothing could be done */
                return err_set(err, -EPROTO, ERR_INVALID, "body is not gzip, or damaged");
        n_made = sizeof(made) - z->z.avail_out;
        n_taken = have - z->z.avail_in;
        z->any = z->any || n_taken > 0;
        z->inside = r != Z_STREAM_END && (z->inside || n_taken > 0);
        (void) evbuffer_drain(in, n_taken);
        if (n_made > 0 && evbuffer_add(out, made, n_made) < 0)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "inflate");
        if (r == Z_STREAM_END && inflateReset(&z->z) != Z_OK) /* another member may follow */
                return err_set(err, -EPROTO, ERR_INTERNAL, "inflate");
        return (int) (n_made + n_taken);
}

int inflate_finish(const struct inflate *z, struct err *err) {
        return z->inside || !z->any ? err_set(err, -EPROTO, ERR_INVALID, "compressed body is cut short") : 0;
}
