/* dossiers.h - what is read of the log, and dossiers, beside the writing, by a thread of their own. Private to notary/.
 */
#pragma once

#include "base/err.h"
#include "notary/notary.h"

struct dossiers;

struct dossier_reply {
        uint64_t peer;
        uint32_t serial;
        struct err result;
};

int dossiers_new(const char *dir, struct dossiers **ret, struct err *err);
struct dossiers *dossiers_free(struct dossiers *d);
int dossiers_done_fd(const struct dossiers *d);
struct dossier_ask {
        struct dossier_reply reply;
        const char *tenant;
        const char *sandbox; /* of a dossier; NULL: records are wanted */
        uint64_t from;
        uint32_t n;
};
/* into: a memfd of the one who asks; taken on success. -EBUSY when as many as fit are waiting. */
int dossiers_ask(struct dossiers *d, const struct dossier_ask *a, int into, struct err *err);
/* True and the next one that is done. */
bool dossiers_done(struct dossiers *d, struct dossier_reply *ret);
