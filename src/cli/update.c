/* update.c - `gabion policy show` and `update`: the network policy of a sandbox that runs, and another one for it. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "json/json.h"
#include "policy/policy.h"
#include "run/remote.h"

int cmd_policy_show(int argc, char **argv) {
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *text = NULL, *denials = NULL;
        struct json *list = NULL;
        struct err err = { 0 };
        AUTO_FD int fd = -1;
        size_t n;

        if (argc != 2 || argv[1][0] == '-')
                return cli_usage("policy", "show: one sandbox ID is expected");
        fd = remote_open(argv[1], &err);
        if (fd < 0 || remote_policy(fd, &text, &n, &err) < 0 || remote_denials(fd, &denials, &err) < 0 ||
            json_parse("policy", text, n, &doc, &err) < 0 ||
            json_parse("denials", denials, strlen(denials), &list, &err) < 0)
                return cli_fail(&err);
        json_set(doc, "denials", list);
        return cli_print(doc, true);
}

static int help(void) {
        (void) printf(
                "Usage: gabion policy update [--drop] ID FILE\n\n"
                "Puts the network part of FILE (version, name and network only) in force for the running sandbox\n"
                "ID: at once for new connections; with --drop, old ones that it no longer allows are ended. The\n"
                "ceiling that the sandbox was started with still holds.\n");
        return 0;
}

int cmd_policy_update(int argc, char **argv) {
        static const struct option longs[] = { { "drop", 0, NULL, 'd' }, { "help", 0, NULL, 'h' }, { 0 } };
        static struct policy p;
        char hash[HASH_TEXT];
        struct err err = { 0 };
        bool drop = false;
        AUTO_FD int fd = -1;
        int key;

        opterr = 0;
        optind = 1;
        while ((key = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
                if (key == 'h')
                        return help();
                if (key != 'd')
                        return cli_usage("policy", "update: unknown option '%.40s'", argv[optind - 1]);
                drop = true;
        }
        if (argc - optind != 2)
                return cli_usage("policy", "update: ID and FILE are expected");
        policy_default(&p);
        if (policy_read_net_file(argv[optind + 1], &p, &err) < 0 || cli_policy_expand(&p, &err) < 0 ||
            policy_check(&p, &err) < 0)
                return cli_fail(&err);
        fd = remote_open(argv[optind], &err);
        if (fd < 0 || remote_update(fd, &p, drop, hash, &err) < 0)
                return cli_fail(&err);
        (void) printf("%s: the policy is now %s\n", argv[optind], hash);
        return 0;
}
