/* auth.h - who asks, and what that one may do: API keys with roles, verbs and templates; tokens of sandboxes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/hash.h"
#include "base/id.h"
#include "store/store.h"

struct daemon;
struct err;
struct http_head;

/* What a key may be allowed to do. Every route names one. */
enum verb {
        VERB_OPEN,    /* no key is needed */
        VERB_READ,    /* list and look: sandboxes, templates, metrics, logs */
        VERB_CREATE,  /* sandboxes */
        VERB_CONNECT, /* get the tokens with which commands and files of a sandbox are reached */
        VERB_UPDATE,  /* time-outs, network, pauses */
        VERB_KILL,
        VERB_AUDIT,   /* events, policies, evidence, denials, usage */
        VERB_KEYS,    /* API keys of the own tenant */
        VERB_TENANTS, /* tenants and their keys: operators only */
        VERBS
};

enum {
        AUTH_KEY = 45, /* "e2b_" + 40 hex digits + NUL */
        AUTH_MASK = 8, /* first and last digits of a key, as many of each, by which people tell keys apart */
        AUTH_TOKEN = HASH_HEX,
};

struct auth {
        struct store_key key;
        struct store_tenant tenant;
        bool is_operator; /* administrator of the operators' tenant */
        bool sees_all;    /* the same, or its auditor: may look at events and metrics of others */
};

const char *verb_name(enum verb v);
/* 0 for a list of verbs ("" = all), else -EINVAL with the names. */
int verb_check_list(const char *list, struct err *err);
/* What a role includes, before a key's own list narrows it. */
bool verb_of_role(enum store_role role, enum verb v);
bool auth_may(const struct auth *a, enum verb v);
/* May the key use this template (by its id)? */
bool auth_may_template(const struct auth *a, const char *template_id);
/* Is name an element of a comma-separated list? */
bool auth_list_has(const char *list, const char *name);

/*
 * Finds the key of a request: X-API-Key, or Authorization: Bearer. ERR_DENIED with -EACCES: none, unknown, expired,
 * revoked; -EPERM: the tenant is disabled.
 */
int auth_request(struct daemon *d, const struct http_head *head, struct auth *ret, struct err *err);

/* A new key: its text (shown once), its hash, and what people may see of it. */
int auth_key_new(char text[AUTH_KEY], uint8_t hash[STORE_HASH], char mask[STORE_MASK], struct err *err);
void auth_key_hash(const char *text, uint8_t hash[STORE_HASH]);

/* Tokens are derived, so they survive restarts and are stored nowhere. kind: "envd", "traffic". */
void auth_token(const struct daemon *d, const char *kind, const char *id, char dst[AUTH_TOKEN]);
