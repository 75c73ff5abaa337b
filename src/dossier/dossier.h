/*
 * dossier.h - everything about one sandbox in one signed file: its records, each with a proof that a signed head of the
 * log covers it, what was read back at its start with policy and plan, and the receipt of its end.
 *
 * A proof shows that a record is in the log. That none is left out is what the notary states by signing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sign/sign.h"

struct err;
struct json;

#define DOSSIER_TYPE "application/vnd.gabion.dossier+json"

enum { DOSSIER_EVENTS = 3000 };

/* Makes and signs it from a log (a ledger's directory, whose key must be readable). The log is verified first. The
 * caller frees *ret. -ENOENT: no such sandbox. */
int dossier_make(const char *dir, const char *tenant, const char *sandbox, char **ret, struct err *err);

struct dossier_facts {
        char tenant[64], sandbox[32], made[32];
        uint64_t events, log_size;
        bool has_start, has_end;
};
/* Checks a dossier whose envelope was opened: head, proofs, hashes of the documents. -EBADMSG and what is wrong.
 * Untrusted input, fuzzed. */
int dossier_check(const char *payload, size_t n, const uint8_t pub[SIGN_PUBLIC], struct dossier_facts *ret,
                  struct err *err);
