/* limits.h - every limit of gabiond. docs/server.md repeats those that a client can meet. */
#pragma once

#include <stdint.h>

enum {
        DAEMON_PATH = 256,
        DAEMON_LISTENERS = 8,
        DAEMON_ADDRESS = 128,    /* text of one listener */
        DAEMON_DOMAIN = 262,     /* host and port */
        DAEMON_CONNS = 8192,     /* of clients */
        DAEMON_FILE = 64 * 1024, /* a settings file */

        REQUEST_BODY = 256 * 1024, /* JSON of a control request */
        REQUEST_ARGS = 2,          /* {parameters} of a path */
        REQUEST_ARG = 160,         /* one of them, decoded */
        REQUEST_HEADERS = 1024,    /* lines that a handler adds to its reply */

        DAEMON_SOURCES = 256, /* tenants with a source address of their own */
        DAEMON_SOURCE = 48,   /* one address with its NUL */

        CREATE_PAIRS = 64,             /* metadata */
        CREATE_METADATA = 16 * 1024,   /* their bytes */
        CREATE_VARIABLES = 512,        /* envVars */
        CREATE_ENV = 48 * 1024,        /* their bytes */
        CREATE_TEMPLATE = 128,         /* a reference as sent */
        CREATE_TIMEOUT_V1 = 15,        /* seconds, unless the request says more */
        CREATE_TIMEOUT_V2 = 300,       /* the same */
        CREATE_TIMEOUT_MAX = 86400,    /* unless the operator says otherwise */
        CREATE_TIMEOUT_EVER = 2592000, /* what the operator may say */
        REFRESH_MAX = 3600,

        PAGE_DEFAULT = 100,
        PAGE_MAX = 100,
        PAGE_TOKEN = 48,
        LOGS_MAX = 1000,
        METRICS_IDS = 100,

        QUOTA_TENANTS = 100000,    /* that are remembered at once */
        ADMIT_WAITING = 256,       /* creates that wait for the machine */
        ADMIT_WAITING_TENANT = 64, /* of one tenant */
        ADMIT_STARTING = 16,       /* creates that the warden works on */
        ADMIT_WAIT_MS = 10000,     /* then 429 */
        CAPACITY_SANDBOXES = 2000, /* unless the operator says otherwise */
        CAPACITY_SANDBOXES_MAX = 100000,

        POOL_DEFAULT = 4, /* sandboxes kept ready, unless the operator says otherwise */
        POOL_MAX = 256,

        FOLLOWERS = 512, /* of events */
        FOLLOWERS_TENANT = 32,
        FOLLOW_PAGE = 128,    /* events read from the store at a time */
        FOLLOW_ALIVE_S = 15,  /* a comment after so much silence */
        EVENTS_KEPT = 200000, /* in the store */
        ATTEMPTS_KEPT = 1000, /* to reach something, of each sandbox */
        GONE_KEPT_DAYS = 7,   /* rows of sandboxes that have ended */
        KEY_USED_MS = 60000,  /* how exact the last use of a key is known */
        STOP_S = 10,          /* for replies under way and for the ends of sandboxes, when the service stops */
};
