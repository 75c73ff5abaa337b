/* verify.c - `gabion verify`: is this statement whole, and signed by that key? Offline; nothing is asked of anybody. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/audit.h"
#include "cli/cli.h"
#include "dossier/dossier.h"
#include "json/json.h"
#include "sign/sign.h"

static int read_file(const char *path, char **ret, struct err *err) {
        AUTO_FD int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        AUTO_FREE char *text = NULL;
        struct stat st;
        int n;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > SIGN_FILE_MAX)
                return err_set(err, -EINVAL, ERR_INVALID, "%.150s: a file of at most %d MiB is expected", path,
                               SIGN_FILE_MAX >> 20);
        text = malloc((size_t) st.st_size + 2);
        n = text ? fd_read_upto(fd, text, (size_t) st.st_size + 2) : -1;
        if (n < 0)
                return err_set(err, -EIO, ERR_INVALID, "%.150s: it cannot be read", path);
        *ret = TAKE_PTR(text);
        return n;
}

static int show_report(const char *payload) {
        CLEANUP(json_freep) struct json *doc = NULL;
        struct err err = { 0 };

        if (json_parse("statement", payload, strlen(payload), &doc, &err) < 0)
                return cli_fail(&err);
        (void) printf("signature ok: %s, subject %s, %s, Linux %s, build %s, %zu attempts, %s%s\n",
                      json_get_str(doc, "type"), json_get_str(doc, "subject"), json_get_str(doc, "time"),
                      json_get_str(doc, "kernel"), json_get_str(doc, "build"), json_len(json_get(doc, "attempts")),
                      json_get_bool(doc, "passed", false) ? "passed" : "FAILED",
                      json_get_bool(doc, "whole", false) ? "" : ", but not every group was tried");
        return 0;
}

static int show_dossier(const char *payload, const uint8_t pub[SIGN_PUBLIC]) {
        struct dossier_facts f;
        struct err err = { 0 };

        if (dossier_check(payload, strlen(payload), pub, &f, &err) < 0)
                return cli_fail(&err);
        (void) printf("signature ok: dossier of sandbox %s, tenant %s, made %s\n"
                      "%llu records, each covered by the signed head over %llu; %s, %s\n",
                      f.sandbox, f.tenant, f.made, (unsigned long long) f.events, (unsigned long long) f.log_size,
                      f.has_start ? "evidence, plan and policy match" : "evidence is not included",
                      f.has_end ? "the receipt matches" : "no receipt is included");
        return 0;
}

/* A stranger's word, but only to choose what is checked. */
static bool is_dossier(const char *text, size_t n) {
        CLEANUP(json_freep) struct json *doc = NULL;
        struct err err = { 0 };
        const char *type = NULL;

        if (json_parse("statement", text, n, &doc, &err) == 0)
                type = json_get_str(doc, "payloadType");
        return type && str_eq(type, DOSSIER_TYPE);
}

static int help(void) {
        (void) printf("Usage: gabion verify [--key PUBLIC-KEY-FILE] FILE\n\n"
                      "Checks a signed report of 'gabion prove -o FILE' or a dossier of 'gabion dossier', offline.\n"
                      "Without --key, the key of this machine (root) or user is used: signing.pub in\n"
                      "%s for reports, and in %s/keys for dossiers.\n",
                      cli_key_dir(), audit_log_dir());
        return 0;
}

/* The keys to try: the one given; else the machine's or the user's own, for dossiers also those before. */
static int keys_get(const char *given, bool dossier, struct ledger_trust *ret, struct err *err) {
        char path[600];

        if (!given && dossier)
                return ledger_own_keys(audit_log_dir(), ret, err);
        (void) snprintf(path, sizeof(path), "%.560s%s", given ? given : cli_key_dir(), given ? "" : "/signing.pub");
        ret->n_keys = 1;
        return sign_public_read(path, ret->keys[0], err);
}

int cmd_verify(int argc, char **argv) {
        static struct ledger_trust trust;
        AUTO_FREE char *text = NULL, *payload = NULL;
        struct err err = { 0 };
        bool own_key = !(argc == 4 && str_eq(argv[1], "--key")), dossier;
        size_t i = 0;
        int n, r;

        if (argc == 2 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")))
                return help();
        if (argc != (own_key ? 2 : 4))
                return cli_usage("verify", "one FILE is expected");
        n = read_file(argv[argc - 1], &text, &err);
        if (n < 0)
                return cli_fail(&err);
        dossier = is_dossier(text, (size_t) n);
        r = keys_get(own_key ? NULL : argv[2], dossier, &trust, &err);
        if (r == 0)
                r = -ENOKEY;
        for (; r == -ENOKEY || (r == -EBADMSG && i < trust.n_keys); i++)
                r = sign_open(text, (size_t) n, dossier ? DOSSIER_TYPE : CLI_PROVE_TYPE, trust.keys[i], &payload, &err);
        if (r < 0 || !payload)
                return cli_fail(&err);
        if (!payload)
                return cli_fail(&err);
        return dossier ? show_dossier(payload, trust.keys[i - 1]) : show_report(payload);
}
