/* pack.h - documents beside a chain, many to a file. Private to ledger/, but for the fuzzer. */
#pragma once

#include "base/id.h"
#include "ledger/chain.h"

enum { PACK_KIND = 8, PACK_LINE = ID_LEN + 1 + PACK_KIND + 12 + 1 + 8 + 1 };

struct pack_entry {
        char sandbox[ID_TEXT], kind[PACK_KIND];
        uint64_t at, n; /* bytes in the file */
};

/* A line of an index; what was parsed gives the same line again. PACK_LINE bytes, -EBADMSG. */
int pack_parse(const char *line, struct pack_entry *ret);
void pack_line(const struct pack_entry *e, char dst[PACK_LINE + 1]);

/* Plain negative errno, or the error that is set. The chain's lock is taken unless it is held. */
int pack_add(struct chain *c, const struct ledger_settings *s, const char *sandbox, const char *kind, const char *text,
             size_t n, struct err *err);
int pack_sync(struct pack *p);
void pack_close(struct pack *p);
/* The caller frees *ret. -ENOENT. */
int pack_read(int chain_fd, const char *sandbox, const char *kind, char **ret, size_t *ret_n, struct err *err);
/* Files that were last written before. */
void pack_drop(int chain_fd, uint64_t before_ms);
