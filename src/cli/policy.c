/* policy.c - `gabion policy`: looks at policy files without starting anything. */
#include "policy/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "json/json.h"
#include "policy/net.h"
#include "policy/net_flags.h"

enum { DIFFERENT = 1 };

int cli_policy_expand(struct policy *p, struct err *err) {
        const struct policy_packages from = { .root = "", .home = cli_env("HOME"), .env = cli_env };

        return policy_net_expand(p, &from, err);
}

static int read_whole(const char *path, struct policy *p, struct err *err) {
        int r;

        policy_default(p);
        r = policy_read_file(path, p, err);
        if (r == 0)
                r = cli_policy_expand(p, err);
        return r < 0 ? r : policy_check(p, err);
}

/* --- check --- */

/* "  443 8000-8100" */
static void print_words(const struct json *list) {
        for (size_t i = 0; i < json_len(list); i++) {
                char text[512] = "";

                (void) field_text(json_at(list, i), text, sizeof(text));
                (void) printf("%s%s", i == 0 ? "  " : " ", text);
        }
}

void cli_print_rule(const struct json *rule) {
        const char *host = json_get_str(rule, "host");

        (void) printf("%s", host ? host : json_get_str(rule, "cidr"));
        print_words(json_get(rule, "ports"));
        print_words(json_get(rule, "methods"));
        print_words(json_get(rule, "paths"));
}

static void print_rules(const struct json *net, const char *key) {
        const struct json *list = json_get(net, key);

        for (size_t i = 0; i < json_len(list); i++) {
                (void) printf("  %s[%zu]  ", key, i);
                cli_print_rule(json_at(list, i));
                (void) printf("\n");
        }
}

void cli_print_packages(const struct policy *p, const char *of) {
        CLEANUP(json_freep) struct json *notes = policy_net_notes(p);

        for (size_t i = 0; i < json_len(notes); i++) {
                char text[1024] = "";

                (void) field_text(json_at(notes, i), text, sizeof(text));
                if (of && (strlen(text) < strlen(of) || !str_eq(text + strlen(text) - strlen(of), of)))
                        continue;
                for (char *c = text; *c; c++) /* file names may hold anything, and a terminal must not obey it */
                        *c = (unsigned char) *c < 0x20 || *c == 0x7f ? '?' : *c;
                (void) printf("  %s%s\n", of ? "preset packages: " : "packages  ", text);
        }
}

/* The effective network, every rule of it, and where those of a preset come from. */
static void print_network(const struct policy *p) {
        CLEANUP(json_freep) struct json *net = policy_net_json(p);
        const struct json *budget = json_get(net, "budget");

        if (!budget)
                return;
        (void) printf("network: default %s%s\n", json_get_str(net, "default"),
                      policy_net_is_public(p) ? " (preset public: whatever is not denied and has a public address)"
                                              : "");
        print_rules(net, "allow");
        print_rules(net, "deny");
        (void) printf("  budget  %" PRId64 " connections, %s new, %" PRId64 " bytes out, %" PRId64 " names\n",
                      json_get_int(budget, "connections", 0), json_get_str(budget, "rate"),
                      json_get_int(budget, "bytes_out", 0), json_get_int(budget, "names", 0));
        cli_print_packages(p, NULL);
}

static int check(int argc, char **argv) {
        static struct policy p;
        CLEANUP(json_freep) struct json *notes = NULL;
        AUTO_FREE char *text = NULL, *notes_text = NULL;
        bool json = argc > 1 && str_eq(argv[1], "--json");
        const char *path = argv[json ? 2 : 1];
        char hash[HASH_TEXT];
        struct err err = { 0 };

        if (argc != (json ? 3 : 2))
                return cli_usage("policy", "check: one FILE is expected");
        if (read_whole(path, &p, &err) < 0 || policy_hash(&p, hash, &err) < 0 || policy_canonical(&p, &text, &err) < 0)
                return cli_fail(&err);
        notes = policy_net_notes(&p);
        if (json && json_text(notes, false, &notes_text, &err) < 0)
                return cli_fail(&err);
        if (json) {
                (void) printf("{\"policy\":\"%s\",\"effective\":%s,\"packages\":%s}\n", hash, text, notes_text);
        } else {
                (void) printf("%s: ok, %s\n", path, hash);
                print_network(&p);
        }
        return 0;
}

/* --- diff --- */

static void print_changes(const char *sign, const struct json *list) {
        for (size_t i = 0; i < json_len(list); i++) {
                const struct json *j = json_at(list, i), *rule = json_get(j, "rule");

                (void) printf("%s %s  ", sign, json_get_str(j, "what"));
                if (rule) {
                        (void) printf("%s  ", json_get_str(j, "change"));
                        cli_print_rule(rule);
                } else if (json_get_str(j, "source"))
                        (void) printf("%s:%s:%s", json_get_str(j, "source"), json_get_str(j, "target"),
                                      json_get_str(j, "mode"));
                else
                        (void) printf("%s -> %s", json_get_str(j, "from"), json_get_str(j, "to"));
                (void) printf("\n");
        }
}

static int diff(int argc, char **argv) {
        static struct policy a, b;
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *text = NULL;
        bool json = argc > 1 && str_eq(argv[1], "--json");
        struct err err = { 0 };

        if (argc != (json ? 4 : 3))
                return cli_usage("policy", "diff: two FILEs are expected");
        if (read_whole(argv[argc - 2], &a, &err) < 0 || read_whole(argv[argc - 1], &b, &err) < 0 ||
            policy_diff(&a, &b, &doc, &err) < 0 || json_text(doc, false, &text, &err) < 0)
                return cli_fail(&err);
        if (json) {
                (void) printf("%s\n", text);
        } else {
                print_changes("+", json_get(doc, "more"));
                print_changes("-", json_get(doc, "less"));
                print_changes("~", json_get(doc, "other"));
        }
        return str_eq(json_get_str(doc, "from"), json_get_str(doc, "to")) ? 0 : DIFFERENT;
}

static int help(void) {
        (void) printf(
                "Usage: gabion policy check [--json] FILE\n"
                "       gabion policy explain --host HOST [--port PORT] [--method METHOD] [--path PATH] [OPTIONS]\n"
                "       gabion policy diff [--json] A B\n"
                "       gabion policy show ID\n"
                "       gabion policy update [--drop] ID FILE\n\n"
                "check    checks a policy file; prints its hash and the effective network, presets expanded. With\n"
                "         --json the whole effective policy. Errors name file, line and key.\n"
                "explain  says whether a connection would be allowed, and by which rule; exit code 0 allowed,\n"
                "         1 denied. 'gabion policy explain --help' lists its options.\n"
                "diff     lists what B allows that A did not (+), what it no longer allows (-), and what else is\n"
                "         different (~), rule by rule; exit code 0 same, 1 different.\n"
                "show     prints the network policy in force for a running sandbox, and its denials so far.\n"
                "update   puts another network policy in force for a running sandbox.\n\n"
                "docs/policy.md describes the schema.\n");
        return 0;
}

int cmd_policy(int argc, char **argv) {
        static const struct {
                const char *name;
                int (*fn)(int argc, char **argv);
        } verbs[] = { { "check", check },
                      { "explain", cmd_policy_explain },
                      { "diff", diff },
                      { "show", cmd_policy_show },
                      { "update", cmd_policy_update } };

        if (argc > 1 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")))
                return help();
        for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(verbs); i++)
                if (str_eq(argv[1], verbs[i].name))
                        return verbs[i].fn(argc - 1, argv + 1);
        return cli_usage("policy", "check, explain, diff, show or update is expected");
}
