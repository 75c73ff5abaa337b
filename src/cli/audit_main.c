/*
 * audit_main.c - gabion-audit: `gabion audit`, `dossier` and `verify` become this program. It is apart from `gabion
 * run` because it computes for long and that starts often: this one has glibc, that one musl
 * (docs/decisions/030-musl.md).
 */
#include <stdio.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"

static const struct {
        const char *name;
        int (*fn)(int argc, char **argv);
} commands[] = {
        { "audit", cmd_audit },
        { "dossier", cmd_dossier },
        { "verify", cmd_verify },
};

int main(int argc, char **argv) {
        for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(commands); i++)
                if (str_eq(argv[1], commands[i].name))
                        return commands[i].fn(argc - 1, argv + 1);
        (void) fprintf(stderr, "gabion-audit: started by gabion, for audit, dossier and verify\n");
        return CLI_OWN_ERROR;
}
