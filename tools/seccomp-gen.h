/*
 * seccomp-gen.h - the build-time generator of the system-call programs: reads the tables of src/seccomp and writes
 * them as C. It runs on the build machine only; every fault in the tables ends it, and with it the build.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sys.h"

enum {
        GEN_PROFILES = 3,
        GEN_CALLS = 512,
        GEN_LINES = 128,
        GEN_VALUES = 256,
        GEN_CONDS = 3,
        GEN_SET = 8,
        GEN_INSNS = 4096, /* the kernel's limit for one program */
        GEN_NAME = 32,
        GEN_TEXT = 120,
};

enum gen_kind { GEN_ALLOW, GEN_ERRNO, GEN_NOTIFY, GEN_RULE };

struct gen_answer {
        enum gen_kind kind;
        int code;            /* the errno of GEN_ERRNO and GEN_NOTIFY */
        char name[GEN_NAME]; /* of the errno or the rule */
};

/* Holds when argument `arg`, masked, is one of the set. */
struct gen_cond {
        unsigned arg, n;
        uint32_t mask, set[GEN_SET];
};

struct gen_line {
        char rule[GEN_NAME];
        unsigned n; /* conditions; 0 for the `else` line */
        struct gen_cond conds[GEN_CONDS];
        struct gen_answer answer;
};

struct gen_call {
        char name[GEN_NAME];
        int nr; /* -1: not on this architecture */
        struct gen_answer answers[GEN_PROFILES];
        char reason[GEN_TEXT];
};

struct gen_table {
        const char *arch; /* as in the names of the number files */
        uint32_t audit_arch;
        struct gen_call calls[GEN_CALLS]; /* those of this architecture first, by number */
        unsigned n_calls, n_native;
        struct gen_line lines[GEN_LINES];
        unsigned n_lines;
};

struct gen_program {
        struct sys_bpf_insn insns[GEN_INSNS];
        unsigned n;
};

/* Says what is wrong and ends the build. The format is a literal. */
#define GEN_DIE(...)                                                                                                   \
        do {                                                                                                           \
                (void) fprintf(stderr, "seccomp-gen: " __VA_ARGS__);                                                   \
                (void) fputc('\n', stderr);                                                                            \
                exit(1);                                                                                               \
        } while (0)

/* Files in dir: the tables; headers: `cc -E -dM` of <asm/unistd.h>, whose calls must all be in the tables,
 * or "-" for an architecture whose headers are not at hand (the tests'). */
void gen_read(struct gen_table *t, const char *dir, const char *arch, const char *headers);

/* The lines of a rule, in order; dies if there are none. */
unsigned gen_rule_lines(const struct gen_table *t, const char *rule, const struct gen_line *ret[GEN_LINES]);

/* What the kernel shall return for an answer that is not a rule. */
uint32_t gen_ret(const struct gen_answer *a);

/* The program as we ship it: one binary search over the numbers, arguments last. */
void gen_tree(const struct gen_table *t, unsigned profile, struct gen_program *ret);

/* The output file, and the program as a C array `<name>_insns`. */
FILE *gen_create(const char *path);
const char *gen_profile(unsigned profile); /* its name */
void gen_write_insns(FILE *f, const char *name, const struct gen_program *p);
void gen_close(FILE *f, const char *path);
