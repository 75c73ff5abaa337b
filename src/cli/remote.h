/*
 * remote.h - the sub-commands against a server, one file each; they make up the program gabion-client.
 *
 * remote_words.c has their words and help texts as one table, which also the completion scripts are made from.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/client.h"

struct buf;
struct err;
struct json;

/* One option. key below 256: also a letter. */
struct remote_option {
        const char *name;
        int key;
        const char *value; /* NULL: a switch */
        const char *what;
};
struct remote_verb {
        const char *name, *usage, *intro, *more;
        const struct remote_option *options;
        size_t n_options;
        bool takes_sandbox; /* its first word is the id or name of one */
};
extern const struct remote_verb remote_verbs[];
extern const size_t remote_n_verbs;
/* What every sub-command has. */
extern const struct remote_option remote_usual[];
extern const size_t remote_n_usual;

/* Keys of long options without a letter. */
enum {
        REMOTE_SERVER = 256,
        REMOTE_KEY_FILE,
        REMOTE_CA_FILE,
        REMOTE_JSON,
        REMOTE_NAME,
        REMOTE_TEMPLATE,
        REMOTE_TIMEOUT,
        REMOTE_METADATA,
        REMOTE_NET,
        REMOTE_ALLOW,
        REMOTE_DENY,
        REMOTE_PRIVATE,
        REMOTE_NAMES,
        REMOTE_TOKENS,
        REMOTE_LISTEN,
        REMOTE_ONCE,
        REMOTE_INTERVAL,
        REMOTE_ALL,
};

struct remote {
        const struct remote_verb *verb;
        struct client *client;
        const char *server, *key_file, *ca_file;
        bool json;
};

/*
 * Reads the options of r->verb; set() gets those that are its own, and says -1 to go on. Stops at the first word that
 * is none: *at is its place in argv, from which reading may go on later. Returns -1 to go on, or an exit code.
 */
int remote_options(struct remote *r, int argc, char **argv, int *at, int (*set)(void *into, int key, const char *value),
                   void *into);
/* The same where options may stand among the words; the words are then at the end of argv, from *at on. */
int remote_options_mixed(struct remote *r, int argc, char **argv, int *at,
                         int (*set)(void *into, int key, const char *value), void *into);
/* r->client from options and environment. */
int remote_open(struct remote *r, struct err *err);
/* GET target; the caller calls client_reply_done(). */
int remote_get(struct remote *r, const char *target, struct client_reply *ret, struct err *err);
/* "NAME=VALUE" into an object; NAME alone takes the caller's variable if `from_env`. False: it is neither. */
bool remote_pair(struct json *into, const char *text, bool from_env);
/* A time such as 90s or 5m, or seconds without a unit. */
int remote_seconds(const char *option, const char *text, uint64_t *ret, struct err *err);
/* Prints JSON: pretty for people, or on one line. */
int remote_print_json(const struct json *doc, bool pretty, struct err *err);
/* Prints a text of the server without what a terminal would obey. */
void remote_print(const char *text);
void remote_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- tables --- */

enum { TABLE_COLUMNS = 10, TABLE_CELL = 48 };
struct table {
        size_t n_columns, n_rows;
        unsigned right; /* bit per column that is aligned to the right */
        char (*cells)[TABLE_COLUMNS][TABLE_CELL];
};
/* Adds a row of n_columns texts (const char *), cut to what fits. -ENOMEM. */
int table_add(struct table *t, const char *const *cells);
void table_print(const struct table *t);
void table_done(struct table *t);
/* 1.5G, 12M, 300K; 42s, 5m, 3h, 2d. */
void text_size(char dst[TABLE_CELL], uint64_t bytes);
void text_span(char dst[TABLE_CELL], uint64_t seconds);

/* --- sandboxes --- */

/* All sandboxes (an array), with a member "metrics" in each that has some. filter: "" or "&name=value...". */
int boxes_list(struct remote *r, const char *filter, bool metrics, struct json **ret, struct err *err);
/* As a table; wide: with memory and disk of their limits. */
int boxes_print(const struct json *list, bool wide);

/* Each gets its own words (argv[0] = the sub-command) and returns the exit code. */
int remote_create(struct remote *r, int argc, char **argv);
int remote_exec(struct remote *r, int argc, char **argv);
int remote_shell(struct remote *r, int argc, char **argv);
int remote_ps(struct remote *r, int argc, char **argv);
int remote_top(struct remote *r, int argc, char **argv);
int remote_inspect(struct remote *r, int argc, char **argv);
int remote_logs(struct remote *r, int argc, char **argv);
int remote_cp(struct remote *r, int argc, char **argv);
int remote_port(struct remote *r, int argc, char **argv);
int remote_stop(struct remote *r, int argc, char **argv);
int remote_rm(struct remote *r, int argc, char **argv);
