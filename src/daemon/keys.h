/* keys.h - API keys as both interfaces make and show them: E2B's /api-keys, and ours with roles and limits. */
#pragma once

#include <stdbool.h>

struct daemon;
struct err;
struct json;
struct request;
struct store_key;

/* Makes a key for a tenant (role, verbs, templates, expiry and name are in *k) and records who did it. *ret: the view
 * of it with its text, the only time it is shown. What *k does not
 * limit, the caller's own key does; more than that is refused. */
int keys_add(struct request *q, const char *tenant, struct store_key *k, bool e2b, struct json **ret, struct err *err);
int keys_revoke(struct request *q, const char *tenant, const char *id, struct err *err);
/* An array of a tenant's keys; e2b: in E2B's form. */
int keys_list(struct request *q, const char *tenant, bool e2b, struct json **ret, struct err *err);
