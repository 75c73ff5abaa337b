/* audit.h - what the files of `gabion audit` share. Private to cli/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/audit.h"
#include "ledger/ledger.h"

struct buf;
struct err;

/* The words of all actions; each uses some. */
struct audit_words {
        const char *log, *tenant, *key, *saved, *socket;
        bool json, follow;
        uint64_t count;
        /* export */
        const char *format, *to, *cursor, *secret, *headers;
        const char *const *args;
        size_t n_args;
};

/* Reads options that the action allows (a list of their names with blanks around them) into *w. -1 to go on, or an
 * exit code. */
int audit_words_read(int argc, char **argv, const char *allowed, struct audit_words *w);

/* The log of this machine (root) or user. */
const char *audit_log_dir(void);

/* One record for a person, without newline: time, number, what happened. */
void audit_line_text(const char *line, size_t n, struct buf *to);

int audit_tail(const struct audit_words *w);
int audit_show(const struct audit_words *w);
int audit_export(const struct audit_words *w);
