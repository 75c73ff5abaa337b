/* query.h - the query of /files. Pure. */
#pragma once

#include <stdbool.h>

#include "agentproto/agentproto.h"
#include "envd/envd.h"
#include "envd/limits.h"

struct query {
        char path[AP_PATH_MAX], user[ENVD_NAME], signature[ENVD_SIGNATURE], expiration[24];
        bool has_path, has_user, has_signature, has_expiration;
};

/* -EINVAL: malformed, too long, or a name twice. Other names are ignored: links get them on their way. */
int envd_query_read(const char *text, struct query *ret);
/* What a signature must be about: "read" or "write". */
const char *envd_query_op(const char *method);
/* Expired or not. */
bool envd_query_is_signed(const struct query *q, const char *op, const char *token);
/* now_s: seconds since 1970. A malformed expiration has passed. */
bool envd_query_is_expired(const struct query *q, uint64_t now_s);
