/* blobs.h - the shape of the generated tables (tools/seccomp-gen.c). Private to this component. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"
#include "seccomp/seccomp.h"

/* Which errno a notified call gets: the first note of its number whose conditions all hold. */
struct seccomp_note {
        int nr, code;
        unsigned n;
        struct {
                unsigned arg;
                uint32_t mask, value;
        } conds[3];
};

struct seccomp_blob {
        const struct sys_bpf_insn *insns;
        const struct seccomp_row *rows; /* by number */
        const struct seccomp_note *notes;
        size_t n_insns, n_rows, n_notes;
        char hash[HASH_TEXT];
};

#define SECCOMP_BLOB(p, hash_)                                                                                         \
        {                                                                                                              \
                p##_insns, p##_rows, p##_notes, sizeof(p##_insns) / sizeof(p##_insns[0]),                              \
                        sizeof(p##_rows) / sizeof(p##_rows[0]), sizeof(p##_notes) / sizeof(p##_notes[0]), hash_        \
        }

const struct seccomp_blob *seccomp_blob(unsigned profile);
