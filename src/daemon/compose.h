/* compose.h - the policy that a sandbox gets: the operator's, with the network of the request, below the ceiling. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "daemon/quota.h"

struct daemon;
struct err;
struct json;
struct template;

struct composed {
        char *policy;  /* canonical JSON, for the warden and the store */
        char *ceiling; /* the same, of what judges its connections beside it; NULL: it has no network */
        char hash[HASH_TEXT];
        struct quota_need need;
};

/* network: of the request, or NULL. ERR_INVALID names the field; -ENOSYS: this build cannot do it. */
int compose(struct daemon *d, const char *tenant, const struct template *t, const struct json *network, bool internet,
            struct composed *ret, struct err *err);
/* The same for one that lives: its policy with another network. */
int compose_again(struct daemon *d, const char *tenant, const char *policy, const struct json *network, bool internet,
                  struct composed *ret, struct err *err);
void composed_done(struct composed *c);
/* What compose() keeps. */
void compose_forget(struct daemon *d);

/* The tenant's ceiling as canonical JSON: its own, or the operator's, which is that of tenant "". The caller frees
 * *ret. *ret is NULL before. */
int compose_ceiling(struct daemon *d, const char *tenant, char **ret, struct err *err);
/* Is this document a ceiling (version, name, network)? Its canonical form in *ret, owned by the caller. */
int compose_check_ceiling(const struct json *doc, char **ret, struct err *err);
