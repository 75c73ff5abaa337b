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
#include "cli/cli.h"
#include "json/json.h"
#include "sign/sign.h"

/* Root's key belongs to the machine, a user's to the user. */
const char *cli_key_dir(void) {
        static char dir[512];
        const char *home = cli_env("HOME");

        if (geteuid() == 0) {
                (void) mkdir("/var/lib/gabion", 0755);
                return "/var/lib/gabion/keys";
        }
        (void) snprintf(dir, sizeof(dir), "%.400s/.local", home);
        (void) mkdir(dir, 0755);
        (void) snprintf(dir, sizeof(dir), "%.400s/.local/share", home);
        (void) mkdir(dir, 0755);
        (void) snprintf(dir, sizeof(dir), "%.400s/.local/share/gabion", home);
        return dir;
}

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

static int show(const char *payload) {
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

int cmd_verify(int argc, char **argv) {
        AUTO_FREE char *text = NULL, *payload = NULL;
        char key[600];
        uint8_t pub[SIGN_PUBLIC];
        struct err err = { 0 };
        bool own_key = !(argc == 4 && str_eq(argv[1], "--key"));
        int n;

        if (argc == 2 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h"))) {
                (void) printf(
                        "Usage: gabion verify [--key PUBLIC-KEY-FILE] FILE\n\n"
                        "Checks a signed report of 'gabion prove -o FILE', offline. Without --key, the key of this machine\n"
                        "(root) or user is used; its public half is signing.pub in %s.\n",
                        cli_key_dir());
                return 0;
        }
        if (argc != (own_key ? 2 : 4))
                return cli_usage("verify", "one FILE is expected");
        (void) snprintf(key, sizeof(key), "%.580s%s", own_key ? cli_key_dir() : argv[2], own_key ? "/signing.pub" : "");
        n = read_file(argv[argc - 1], &text, &err);
        if (n < 0 || sign_public_read(key, pub, &err) < 0 ||
            sign_open(text, (size_t) n, CLI_PROVE_TYPE, pub, &payload, &err) < 0)
                return cli_fail(&err);
        return show(payload);
}
