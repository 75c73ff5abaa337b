/*
 * seccomp-gen.c - writes the tables of src/seccomp as C: programs, their hashes, rows, and the errnos of notified
 * calls. The output depends on the tables and the architecture alone, so that a build can be repeated bit for bit.
 *
 *   seccomp-gen TABLE-DIR ARCH UNISTD-MACROS OUTPUT
 */
#include "seccomp-gen.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/hash.h"

static struct gen_table table;
static struct gen_program program;

static void write_rows(FILE *f, unsigned p) {
        (void) fprintf(f, "static const struct seccomp_row %s_rows[] = {\n", gen_profile(p));
        for (unsigned i = 0; i < table.n_native; i++) {
                const struct gen_call *c = &table.calls[i];
                const struct gen_answer *a = &c->answers[p];
                bool narrowed = a->kind != GEN_ALLOW && a->kind != GEN_RULE && c->answers[0].kind != a->kind;
                char answer[64];

                if (a->kind == GEN_ALLOW)
                        (void) snprintf(answer, sizeof(answer), "allow");
                else if (a->kind == GEN_NOTIFY)
                        (void) snprintf(answer, sizeof(answer), "notify");
                else
                        (void) snprintf(answer, sizeof(answer), "%s%s", a->kind == GEN_RULE ? "rule:" : "", a->name);
                /* The reason in the table is why agent has the call; it would mislead beside a refusal. */
                (void) fprintf(f, "        { \"%s\", %d, \"%s\", \"%s\" },\n", c->name, c->nr, answer,
                               narrowed ? "not needed for pure computation" : c->reason);
        }
        (void) fputs("};\n\n", f);
}

/* One line per combination of values, so that the reader needs no sets. */
static void write_combinations(FILE *f, int nr, const struct gen_line *l) {
        unsigned at[GEN_CONDS] = { 0 };
        unsigned i;

        do {
                (void) fprintf(f, "        { %d, %d, %u, {", nr, l->answer.code, l->n);
                for (i = 0; i < l->n; i++)
                        (void) fprintf(f, " { %u, 0x%x, 0x%x },", l->conds[i].arg, l->conds[i].mask,
                                       l->conds[i].set[at[i]]);
                (void) fputs(l->n ? " } },\n" : " { 0, 0, 0 } } },\n", f);
                for (i = 0; i < l->n && ++at[i] == l->conds[i].n; i++)
                        at[i] = 0;
        } while (i < l->n);
}

static void write_notes(FILE *f, unsigned p) {
        (void) fprintf(f, "static const struct seccomp_note %s_notes[] = {\n", gen_profile(p));
        for (unsigned i = 0; i < table.n_native; i++) {
                const struct gen_answer *a = &table.calls[i].answers[p];
                const struct gen_line *lines[GEN_LINES];
                unsigned n;

                if (a->kind == GEN_NOTIFY)
                        (void) fprintf(f, "        { %d, %d, 0, { { 0, 0, 0 } } },\n", table.calls[i].nr, a->code);
                if (a->kind != GEN_RULE)
                        continue;
                n = gen_rule_lines(&table, a->name, lines);
                for (unsigned k = 0; k < n; k++)
                        if (lines[k]->answer.kind == GEN_NOTIFY)
                                write_combinations(f, table.calls[i].nr, lines[k]);
        }
        (void) fputs("};\n\n", f);
}

static void write_blobs(FILE *f) {
        char hash[GEN_PROFILES][HASH_TEXT];

        (void) fputs("#include \"seccomp/blobs.h\"\n\n", f);
        for (unsigned p = 0; p < GEN_PROFILES; p++) {
                gen_tree(&table, p, &program);
                hash_text(hash[p], program.insns, program.n * sizeof(program.insns[0]));
                gen_write_insns(f, gen_profile(p), &program);
                write_rows(f, p);
                write_notes(f, p);
        }
        (void) fputs("static const struct seccomp_blob blobs[] = {\n", f);
        for (unsigned p = 0; p < GEN_PROFILES; p++)
                (void) fprintf(f, "        SECCOMP_BLOB(%s, \"%s\"),\n", gen_profile(p), hash[p]);
        (void) fputs("};\n\nconst struct seccomp_blob *seccomp_blob(unsigned profile) {\n"
                     "        return &blobs[profile];\n}\n",
                     f);
}

int main(int argc, char **argv) {
        FILE *f;

        if (argc != 5)
                GEN_DIE("usage: seccomp-gen TABLE-DIR ARCH UNISTD-MACROS OUTPUT");
        gen_read(&table, argv[1], argv[2], argv[3]);
        f = gen_create(argv[4]);
        write_blobs(f);
        gen_close(f, argv[4]);
        return 0;
}
