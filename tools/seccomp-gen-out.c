/* seccomp-gen-out.c - writing the generated C; a file that could not be written whole ends the build. */
#include <stdio.h>

#include "seccomp-gen.h"

const char *gen_profile(unsigned profile) {
        static const char *const names[GEN_PROFILES] = { "agent", "strict", "debug" };

        return names[profile];
}

FILE *gen_create(const char *path) {
        FILE *f = fopen(path, "we");

        if (!f)
                GEN_DIE("cannot write %s", path);
        (void) fputs("/* Generated from the tables in src/seccomp. */\n", f);
        return f;
}

void gen_write_insns(FILE *f, const char *name, const struct gen_program *p) {
        (void) fprintf(f, "static const struct sys_bpf_insn %s_insns[] = {\n", name);
        for (unsigned i = 0; i < p->n; i++) {
                const struct sys_bpf_insn *b = &p->insns[i];

                (void) fprintf(f, "        { 0x%02x, %u, %u, 0x%08x },\n", b->code, b->jt, b->jf, b->k);
        }
        (void) fputs("};\n\n", f);
}

void gen_close(FILE *f, const char *path) {
        int bad = ferror(f);

        if (fclose(f) != 0 || bad)
                GEN_DIE("cannot write %s", path);
}
