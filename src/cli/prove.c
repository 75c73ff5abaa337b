/* prove.c - `gabion prove`: attacks a sandbox on this machine, and shows what came of it. */
#include "prove/prove.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "json/json.h"
#include "policy/policy.h"
#include "sign/sign.h"

enum { SUBJECTS = 8, PAGE_MAX = 4 << 20 };

static struct prove_report reports[SUBJECTS];
static const struct prove_report *table[SUBJECTS]; /* to each of them */

static void help(void) {
        (void) printf(
                "Usage: gabion prove [OPTIONS]\n\n"
                "Starts a throw-away sandbox as a user would, makes several hundred harmless attempts to get out of it\n"
                "from inside, watches planted canaries from outside, and reports. Exit code 1 on any crit or high finding.\n\n"
                "  --tier ns              the tier to attack; this build has no other\n"
                "  --policy FILE          the policy to attack (default: the hardened default)\n"
                "  --limits cgroup|rlimit rlimit: attack a sandbox without control groups\n"
                "  --against LIST         put the same attempts to other sandboxes too, comma-separated; below is how\n"
                "                         each is called\n");
        (void) printf(
                "  --wrap 'COMMAND {}'    put them to any other: {} is the probe with its arguments; {probe} and {args} apart\n"
                "  --groups LETTERS       only these groups of attempts, A to J\n"
                "  --all                  list every attempt, not only findings\n"
                "  --json                 the report as JSON (an array if there are several)\n"
                "  --html FILE            the report as one page, besides\n"
                "  -o FILE                the report as a signed statement, for gabion verify\n"
                "  -h, --help             this text\n\n"
                "In these commands {probe} is the probe, {args} its arguments, {} both; {bundle} a throw-away directory with\n"
                "config.json (src/prove/bundle.json) and a rootfs that has the probe only; {name} the name of the attack.\n");
        for (size_t i = 0; prove_peer_name(i); i++)
                (void) printf("\n  %s:\n    %s\n", prove_peer_name(i), prove_peer_command(prove_peer_name(i)));
}

struct words {
        struct run_options o;
        char *against;
        const char *wrap, *html, *out, *groups;
        bool json, all;
};

static int print_json(size_t n) {
        CLEANUP(json_freep) struct json *list = json_new_array();
        struct err err = { 0 };

        for (size_t i = 0; i < n; i++) {
                struct json *doc = NULL;

                if (prove_json(&reports[i], &doc, &err) < 0)
                        return cli_fail(&err);
                json_add(list, doc);
        }
        return cli_print(n == 1 ? json_at(list, 0) : list, true);
}

/* DSSE, signed with the key of this machine or user. */
static int signed_write(const char *path, size_t n) {
        CLEANUP(sign_key_freep) struct sign_key *key = NULL;
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *payload = NULL, *envelope = NULL;
        AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        struct err err = { 0 };

        if (fd < 0)
                return cli_usage("prove", "-o %.150s: %s", path, strerror(errno));
        if (sign_key_open(cli_key_dir(), &key, &err) < 0 || prove_json_signed(table, n, &doc, &err) < 0 ||
            json_text(doc, false, &payload, &err) < 0 ||
            sign_envelope(key, CLI_PROVE_TYPE, payload, &envelope, &err) < 0)
                return cli_fail(&err);
        return fd_write_all(fd, envelope, strlen(envelope)) < 0
                       ? cli_usage("prove", "-o %.150s: it cannot be written", path)
                       : 0;
}

static int html_write(const char *path, size_t n) {
        AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        struct buf page = BUF_INIT(PAGE_MAX);
        int r;

        if (fd < 0)
                return cli_usage("prove", "--html %.150s: %s", path, strerror(errno));
        prove_html(table, n, &page);
        r = page.bad ? -E2BIG : fd_write_all(fd, buf_str(&page), page.len);
        buf_done(&page);
        return r < 0 ? cli_usage("prove", "--html %.150s: it cannot be written", path) : 0;
}

static int report(const struct words *w, size_t n) {
        int r;

        for (size_t i = 0; i < n; i++)
                table[i] = &reports[i];
        if ((w->html && html_write(w->html, n) != 0) || (w->out && signed_write(w->out, n) != 0))
                return CLI_OWN_ERROR;
        if (w->json) {
                r = print_json(n);
                return r != 0 ? r : !prove_passed(&reports[0]);
        }
        r = prove_print(&reports[0], w->all, isatty(STDOUT_FILENO));
        if (n > 1)
                prove_print_table(table, n);
        return r;
}

/* Before anything is attacked: are all these names known, and not too many? -1: yes. */
static int others_check(const struct words *w) {
        size_t n = w->wrap ? 2 : 1;

        for (const char *name = w->against; name && *name; n++) {
                size_t len = strcspn(name, ",");
                char one[48];

                (void) snprintf(one, sizeof(one), "%.*s", (int) len, name);
                if (!prove_peer_command(one))
                        return cli_usage("prove", "--against '%.40s' is not known", one);
                name += len + (name[len] == ',');
        }
        return n > SUBJECTS ? cli_usage("prove", "at most %d sandboxes in one run", SUBJECTS) : -1;
}

/* Each peer of a comma-separated list. A peer that is not here or fails is said, and left out. */
static int others(struct words *w, size_t *n) {
        struct err err = { 0 };

        for (char *name = w->against, *next; name && *name; name = next) {
                next = strchr(name, ',');
                if (next)
                        *next++ = '\0';
                if (prove_peer(name, w->groups, &reports[*n], &err) < 0)
                        (void) fprintf(stderr, "gabion: %s is left out: %s\n", name, err.msg);
                else
                        ++*n;
        }
        if (w->wrap) {
                if (prove_wrap("wrapped", w->wrap, w->groups, &reports[*n], &err) < 0)
                        return cli_fail(&err);
                ++*n;
        }
        return -1;
}

/* -1: go on. */
static int take(int key, struct words *w) {
        struct err err = { 0 };

        switch (key) {
        case 'h':
                help();
                return 0;
        case 'T':
                if (str_eq(optarg, "gvisor") || str_eq(optarg, "microvm"))
                        return cli_usage("prove",
                                         "--tier %s: this build has no such tier; it is never downgraded silently",
                                         optarg);
                return str_eq(optarg, "ns") ? -1 : cli_usage("prove", "--tier '%.40s': ns is expected", optarg);
        case 'p':
                return policy_read_file(optarg, w->o.policy, &err) < 0 || cli_policy_expand(w->o.policy, &err) < 0
                               ? cli_fail(&err)
                               : -1;
        case 'l':
                if (!str_eq(optarg, "cgroup") && !str_eq(optarg, "rlimit"))
                        return cli_usage("prove", "--limits '%.40s': cgroup or rlimit is expected", optarg);
                w->o.off |= str_eq(optarg, "rlimit") ? PLAN_OFF_CGROUP | PLAN_OFF_IO : 0;
                return -1;
        case 'g':
                w->against = optarg;
                return -1;
        case 'W':
                w->wrap = optarg;
                return -1;
        case 'G':
                if (!optarg[0] || strspn(optarg, "ABCDEFGHIJ") != strlen(optarg))
                        return cli_usage("prove", "--groups '%.40s': letters from A to J are expected", optarg);
                w->groups = optarg;
                return -1;
        case 'o':
                w->out = optarg;
                return -1;
        case 'H':
                w->html = optarg;
                return -1;
        case 'a':
                w->all = true;
                return -1;
        case 'j':
                w->json = true;
                return -1;
#ifdef GABION_WEAKEN
        case 'w':
                w->o.weaken = sandbox_weaken_parse(optarg);
                w->o.unchecked = true;
                return -1;
#endif
        default:
                return cli_usage("prove", "unknown or incomplete option");
        }
}

int cmd_prove(int argc, char **argv) {
        static const struct option longs[] = {
                { "tier", 1, NULL, 'T' },    { "policy", 1, NULL, 'p' }, { "limits", 1, NULL, 'l' },
                { "against", 1, NULL, 'g' }, { "wrap", 1, NULL, 'W' },   { "html", 1, NULL, 'H' },
                { "groups", 1, NULL, 'G' },  { "all", 0, NULL, 'a' },    { "json", 0, NULL, 'j' },
                { "help", 0, NULL, 'h' },
#ifdef GABION_WEAKEN
                { "weaken", 1, NULL, 'w' },
#endif
                { NULL, 0, NULL, 0 },
        };
        static struct policy policy;
        struct words w = {
                .o = { .policy = &policy, .agent = gabion_agent_image, .agent_bytes = gabion_agent_image_size }
        };
        struct err err = { 0 };
        size_t n = 1;
        int key, r = -1;

        policy_default(&policy);
        opterr = 0;
        while (r == -1 && (key = getopt_long(argc, argv, "+:ho:", longs, NULL)) != -1)
                r = take(key, &w);
        if (r != -1)
                return r;
        if (optind < argc)
                return cli_usage("prove", "unexpected word '%.40s'", argv[optind]);
        r = others_check(&w);
        if (r != -1)
                return r;
        if (prove_run(&w.o, w.groups, &reports[0], &err) < 0)
                return cli_fail(&err);
        r = others(&w, &n);
        return r != -1 ? r : report(&w, n);
}
