/* policy.c - `gabion policy`: looks at policy files without starting anything. */
#include "policy/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "json/json.h"

static int check(const char *path, bool json) {
        static struct policy p;
        AUTO_FREE char *text = NULL;
        char hash[HASH_TEXT];
        struct err err = { 0 };

        policy_default(&p);
        if (policy_read_file(path, &p, &err) < 0 || policy_check(&p, &err) < 0 || policy_hash(&p, hash, &err) < 0 ||
            policy_canonical(&p, &text, &err) < 0)
                return cli_fail(&err);
        if (json)
                (void) printf("{\"policy\":\"%s\",\"effective\":%s}\n", hash, text);
        else
                (void) printf("%s: ok, %s\n", path, hash);
        return 0;
}

int cmd_policy(int argc, char **argv) {
        bool json = argc > 2 && str_eq(argv[2], "--json");

        if (argc > 1 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h"))) {
                (void) printf(
                        "Usage: gabion policy check [--json] FILE\n\n"
                        "Checks a policy file and prints its hash; with --json also the effective policy, defaults\n"
                        "filled in. Errors name file, line and key. docs/policy.md describes the schema.\n");
                return 0;
        }
        if (argc < 2 || !str_eq(argv[1], "check"))
                return cli_usage("policy", "'check' is expected");
        if (argc != (json ? 4 : 3))
                return cli_usage("policy", "check: one FILE is expected");
        return check(argv[json ? 3 : 2], json);
}
