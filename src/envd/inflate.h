/* inflate.h - gzip, as it comes; the only user of zlib. Private. */
#pragma once

#include <stddef.h>

struct err;
struct evbuffer;
struct inflate;

int inflate_new(struct inflate **ret, struct err *err);
struct inflate *inflate_free(struct inflate *z);
/* Makes at most ENVD_INFLATE bytes to the end of `out` and takes from `in` what was needed for that. The number of
 * bytes made or taken; 0: more are needed; -EPROTO: not gzip. */
int inflate_some(struct inflate *z, struct evbuffer *in, struct evbuffer *out, struct err *err);
/* There will be no more bytes. -EPROTO: cut short. */
int inflate_finish(const struct inflate *z, struct err *err);
