/*
 * create.h - the body of "create a sandbox" as a value. Pure, fuzzed.
 *
 * Strict: an unknown member is refused by its name, because one that is ignored could have been a restriction. null is
 * as good as absent. What this build cannot do (pauses, volumes, cloud identities) is -ENOSYS, not ignored.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/limits.h"
#include "store/store.h"

struct err;
struct json;

enum { CREATE_MASK_HOST = 128 };

struct create {
        char template[CREATE_TEMPLATE];
        char name[STORE_NAME]; /* "": none */
        uint32_t timeout_s;
        bool internet;
        bool private_ports;               /* allowPublicTraffic was false */
        char mask_host[CREATE_MASK_HOST]; /* "": none */
        struct json *network;             /* as sent, without nulls; NULL: none */
        char *metadata;                   /* canonical JSON */
        char *env;                        /* NAME=value, each with its NUL */
        size_t n_env, n_vars;             /* bytes, variables */
};

/* timeout_max_s: what the operator allows. create_done() frees. */
int create_decode(const struct json *doc, bool v2, uint32_t timeout_max_s, struct create *ret, struct err *err);
void create_done(struct create *c);

/* {"timeout": seconds} of time-outs and connects; *ret is the default before. required: it must be there. */
int create_decode_timeout(const struct json *doc, uint32_t min_s, uint32_t max_s, bool required, uint32_t *ret,
                          struct err *err);
/* {"duration": seconds} of refreshes. */
int create_decode_refresh(const struct json *doc, uint32_t *ret, struct err *err);
/* PUT network: everything is replaced; drop (our own addition): also for connections that are open; *ret_network (NULL:
 * empty) is owned by the caller. */
int create_decode_network(const struct json *doc, struct json **ret_network, bool *ret_internet, bool *ret_drop,
                          struct err *err);
