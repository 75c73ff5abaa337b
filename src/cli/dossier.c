/* dossier.c - `gabion dossier`: everything about one sandbox in one signed file. */
#include "dossier/dossier.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/audit.h"
#include "cli/cli.h"
#include "notary/notary.h"

enum { PATIENCE_MS = 120000 };

static int help(void) {
        (void) printf(
                "Usage: gabion dossier [OPTIONS] SANDBOX\n\n"
                "Writes everything that the audit log has about a sandbox into one signed file: its records, each\n"
                "with a proof that a signed head covers it, what was read back at its start, policy and plan, and\n"
                "the receipt of its end. 'gabion verify FILE' checks it, anywhere.\n\n"
                "  -o, --output FILE   where to (default: standard output)\n"
                "  --log DIR           the log, whose key you can read (default %s)\n"
                "  --socket PATH       ask a running notary instead\n"
                "  --tenant NAME       whose log (default: local)\n",
                audit_log_dir());
        return 0;
}

/* From a running notary. */
static int ask(const char *socket, const char *tenant, const char *id, char **ret, struct err *err) {
        struct notary_client c;
        size_t n;
        int r = notary_connect(socket, &c, err);

        if (r == 0)
                r = notary_dossier(&c, tenant, id, PATIENCE_MS, ret, &n, err);
        notary_close(&c);
        return r;
}

static int output(const char *path, const char *text, struct err *err) {
        AUTO_FD int fd = -1;
        int out = STDOUT_FILENO;

        if (path) {
                fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
                if (fd < 0)
                        return err_set(err, -errno, ERR_INVALID, "-o %.150s: %s", path, strerror(errno));
                out = fd;
        }
        if (fd_write_all(out, text, strlen(text)) < 0 || fd_write_all(out, "\n", 1) < 0)
                return err_set(err, -EIO, ERR_INTERNAL, "dossier: it cannot be written");
        return 0;
}

int cmd_dossier(int argc, char **argv) {
        static const struct option longs[] = { { "output", 1, NULL, 'o' }, { "log", 1, NULL, 'l' },
                                               { "socket", 1, NULL, 's' }, { "tenant", 1, NULL, 't' },
                                               { "help", 0, NULL, 'h' },   { 0 } };
        const char *path = NULL, *log = audit_log_dir(), *socket = NULL, *tenant = "local";
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };
        int key, r;

        opterr = 0;
        while ((key = getopt_long(argc, argv, ":o:h", longs, NULL)) != -1)
                switch (key) {
                case 'o':
                        path = optarg;
                        break;
                case 'l':
                        log = optarg;
                        break;
                case 's':
                        socket = optarg;
                        break;
                case 't':
                        tenant = optarg;
                        break;
                case 'h':
                        return help();
                default:
                        return cli_usage("dossier", "option '%.40s' is unknown or needs a value",
                                         cli_refused(argc, argv));
                }
        if (argc - optind != 1)
                return cli_usage("dossier", "the id of one sandbox is expected");
        r = socket ? ask(socket, tenant, argv[optind], &text, &err)
                   : dossier_make(log, tenant, argv[optind], &text, &err);
        if (r == 0)
                r = output(path, text, &err);
        return r < 0 ? cli_fail(&err) : 0;
}
