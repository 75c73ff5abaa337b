/* ask.h - one question, carried to the servers until one of them answers. Private to src/dns. */
#pragma once

#include <stdint.h>

#include "dns/dns.h"
#include "reply.h"

struct ask;

/* code as of reply_decode(), or -ETIMEDOUT, -EIO after the last server. Called once, from the loop; may free the ask.
 */
typedef void (*ask_done_fn)(struct ask *a, int code, const struct reply *rep, void *arg);

/* Borrows base, c and name for its life. 0 or -ENOMEM. */
int ask_new(struct event_base *base, const struct dns_config *c, const char *name, uint16_t type, ask_done_fn done,
            void *arg, struct ask **ret);
/* Accepts NULL. */
struct ask *ask_free(struct ask *a);
