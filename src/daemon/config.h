/* config.h - what the operator decided: options of the command line over a settings file over defaults. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/limits.h"
#include "policy/policy.h"
#include "store/store.h"

struct err;

/* Before an address where clients speak TLS. */
#define CONFIG_TLS "tls:"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO };

struct config {
        char listen[DAEMON_LISTENERS][DAEMON_ADDRESS]; /* [tls:]ADDRESS:PORT or unix:PATH */
        size_t n_listen;
        char audit[DAEMON_PATH]; /* socket of the notary; "": no audit log */
        char data[DAEMON_PATH], warden[DAEMON_PATH], key_file[DAEMON_PATH], user[STORE_NAME];
        char certificate[DAEMON_PATH], certificate_key[DAEMON_PATH]; /* of listeners with tls: */
        char domain[DAEMON_DOMAIN];                                  /* of sandboxes, as clients get it; "": none */
        int level;                                                   /* enum log_level */
        bool keep;                                                   /* sandboxes outlive an orderly stop */
        bool no_landlock;
        uint32_t parent; /* process with which to end; 0: none */

        struct policy policy;     /* of every sandbox, before its request */
        struct policy ceiling;    /* of tenants without one of their own; only its network counts */
        struct store_quota quota; /* of new tenants */
        struct {
                char tenant[STORE_NAME], address[DAEMON_SOURCE];
        } sources[DAEMON_SOURCES]; /* whence connections of their sandboxes come */
        size_t n_sources;
        uint32_t timeout_max_s;
        uint32_t pool; /* sandboxes that are kept ready */

        struct {
                uint32_t sandboxes, cpu_milli;
                uint64_t memory_bytes, disk_bytes; /* sums of limits; 0: not looked at */
                uint64_t reserve_bytes;            /* of memory that stays free */
        } capacity;
        struct {
                uint32_t waiting, waiting_tenant, starting, wait_ms;
        } queue;
};

/* Defaults. config_done() frees. */
void config_default(struct config *c);
void config_done(struct config *c);
/* Overlays a YAML file of the operator; unknown keys are refused. */
int config_read(struct config *c, const char *path, struct err *err);
/* One value by its name on the command line ("listen", "domain", ...); messages name it. */
int config_set(struct config *c, const char *name, const char *value, struct err *err);
/* The source address of a tenant's connections, by its name; "": the server's. */
const char *config_source(const struct config *c, const char *tenant);
bool config_is_tls(const char *listen);
/* What can only be judged at the end. */
int config_check(struct config *c, struct err *err);
