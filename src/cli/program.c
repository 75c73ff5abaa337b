/* program.c - the other programs of Gabion: where they are, and those that do some of our sub-commands. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/cli.h"

/* Beside this program when it is installed, or in the build tree. */
int cli_program(const char *name, const char *beside, char dst[CLI_PROGRAM], struct err *err) {
        char self[CLI_PROGRAM - 64];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        char *slash;

        self[n > 0 ? n : 0] = '\0';
        slash = strrchr(self, '/');
        if (slash)
                *slash = '\0';
        (void) snprintf(dst, CLI_PROGRAM, "%s/../libexec/gabion/%s", self, name);
        if (slash && access(dst, X_OK) == 0)
                return 0;
        (void) snprintf(dst, CLI_PROGRAM, "%s/../%s/%s", self, beside, name);
        if (slash && access(dst, X_OK) == 0)
                return 0;
        (void) snprintf(dst, CLI_PROGRAM, "%s/%s", GABION_LIBEXEC, name);
        if (access(dst, X_OK) == 0)
                return 0;
        return err_set(err, -ENOENT, ERR_NOT_FOUND, "the program %s is not in %s; install it (make install)", name,
                       GABION_LIBEXEC);
}

/* argv[-1] is ours, too. */
static int become(const char *name, char **argv) {
        char path[CLI_PROGRAM];
        struct err err = { 0 };

        if (cli_program(name, "cli", path, &err) < 0)
                return cli_fail(&err);
        (void) execv(path, argv - 1);
        (void) err_set(&err, -errno, ERR_INTERNAL, "%s: %s", path, strerror(errno));
        return cli_fail(&err);
}

/* Dynamic, and knows TLS: docs/decisions/025-client.md. */
int cmd_remote(int argc, char **argv) {
        (void) argc;
        return become("gabion-client", argv);
}

/* With glibc, for logs of any length: docs/decisions/030-musl.md. */
int cmd_log(int argc, char **argv) {
        (void) argc;
        return become("gabion-audit", argv);
}
