/*
 * options.c - the words of `gabion run` and `gabion plan`. One table drives parsing and help; flags win over the policy
 * file wherever they stand.
 */
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "policy/policy.h"
#include "run/run.h"

enum { ENV_TEXT = 32768 };

/* Long options without a letter. */
enum {
        OPT_CPUS = 256,
        OPT_PIDS,
        OPT_DISK,
        OPT_TIMEOUT,
        OPT_OUTPUT,
        OPT_IO,
        OPT_FILES,
        OPT_NAME,
        OPT_POLICY,
        OPT_TEMPLATE,
        OPT_USER,
        OPT_SYSCALLS,
        OPT_JSON,
        OPT_EVIDENCE,
        OPT_SHOW,
        OPT_AUDIT,
        OPT_TENANT,
        OPT_LIMITS,
        OPT_OFF,
        OPT_SENSITIVE,
        OPT_NO_STDIN,
        OPT_RM,
        OPT_WEAKEN,
};

static const struct opt {
        const char *name;
        int key;
        int has_arg;
        const char *value, *what;
} table[] = {
        { "volume", 'v', 1, "SRC:DST[:ro|rw]", "show a host directory or file inside; read-only unless rw" },
        { "env", 'e', 1, "NAME[=VALUE]", "set a variable; without a value, take the caller's" },
        { "workdir", 'w', 1, "DIR", "working directory inside (default: the home directory)" },
        { "memory", 'm', 1, "SIZE", "memory limit, files included (default 512M)" },
        { "cpus", OPT_CPUS, 1, "N", "CPU limit (default 1)" },
        { "pids", OPT_PIDS, 1, "N", "processes and threads (default 256)" },
        { "disk", OPT_DISK, 1, "SIZE", "files written inside (default 1G, at most 7/8 of the memory)" },
        { "timeout", OPT_TIMEOUT, 1, "TIME", "end the command after this time (default 1h)" },
        { "output", OPT_OUTPUT, 1, "SIZE", "output limit (default 64M)" },
        { "io", OPT_IO, 1, "SIZE", "disk throughput per second and direction (default 256M; 0 = no limit)" },
        { "files", OPT_FILES, 1, "N", "open files of one process (default 1024)" },
        { "tty", 't', 0, NULL, "give the command a terminal" },
        { "interactive", 'i', 0, NULL, "keep standard input open (the default)" },
        { "no-stdin", OPT_NO_STDIN, 0, NULL, "standard input is empty" },
        { "name", OPT_NAME, 1, "NAME", "name of the sandbox, and host name inside" },
        { "policy", OPT_POLICY, 1, "FILE", "policy file (YAML or JSON); flags win over it" },
        { "net", CLI_NET, 1, "none|public|packages|FILE", "what may be reached (default: none)" },
        { "allow", CLI_ALLOW, 1, "HOST[:PORT]", "allow a name or address; repeatable (default ports 80, 443)" },
        { "ceiling", CLI_CEILING, 1, "FILE", "the operator's limits, which the network policy cannot pass" },
        { "resolve", CLI_RESOLVE, 1, "NAME:PORT=ADDR:PORT", "a name that leads elsewhere (shown in evidence)" },
        { "upstream-proxy", CLI_UPSTREAM, 1, "URL", "go out through a proxy: http:// or socks5://" },
        { "bind", CLI_BIND, 1, "ADDR", "source address of outgoing connections" },
        { "ca-bundle", CLI_CA_BUNDLE, 1, "FILE", "certificates to trust instead of the host's" },
        { "egress-log", CLI_EGRESS_LOG, 1, "FILE", "log of every connection attempt" },
        { "template", OPT_TEMPLATE, 1, "NAME", "root file system (default: host)" },
        { "user", OPT_USER, 1, "user|root", "who runs the command inside (default: user)" },
        { "syscalls", OPT_SYSCALLS, 1, "agent|strict|debug", "system-call profile (default: agent)" },
        { "json", OPT_JSON, 2, "FILE", "print the result as JSON, last line of standard output (or to FILE)" },
        { "evidence", OPT_EVIDENCE, 1, "FILE", "write what was read back from the kernel" },
        { "show-evidence", OPT_SHOW, 0, NULL, "show it as a card" },
        { "audit", OPT_AUDIT, 1, "DIR|SOCKET",
          "record the run in a log, or with a notary (default: the machine's, if any)" },
        { "tenant", OPT_TENANT, 1, "NAME", "whose chain of records it belongs to (default: local)" },
        { "limits", OPT_LIMITS, 1, "cgroup|rlimit", "rlimit: go without control groups (weaker; shown in evidence)" },
        { "off", OPT_OFF, 1, "landlock|io", "do without a control that this machine lacks (shown in evidence)" },
        { "allow-sensitive-mounts", OPT_SENSITIVE, 0, NULL, "mount what is refused by default (shown in evidence)" },
        { "quiet", 'q', 0, NULL, "no lines about denials on standard error" },
        { "rm", OPT_RM, 0, NULL, "accepted for docker's sake: nothing is ever kept" },
        { "help", 'h', 0, NULL, "this text" },
};

/* What the flags said, before the policy file is known. */
struct words {
        const char *policy, *user, *syscalls, *template, *json;
        const char *limits[8];
        const char *mounts[POLICY_MOUNTS];
        size_t n_mounts;
        const char *env[RUN_ENV];
        size_t n_env;
        struct net_words net;
};

static const char *const limit_names[] = { "memory", "cpu", "pids", "disk", "time", "output", "io", "files" };

static void help(const char *command) {
        (void) printf("Usage: gabion %s [OPTIONS] [--] COMMAND [ARGUMENTS]\n\n", command);
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                char left[64];
                char letter[8] = "    ";

                if (table[i].key < 256)
                        (void) snprintf(letter, sizeof(letter), "-%c, ", table[i].key);
                (void) snprintf(left, sizeof(left), "%s--%s%s%s%s", letter, table[i].name,
                                table[i].has_arg == 2 ? "[="
                                : table[i].has_arg    ? " "
                                                      : "",
                                table[i].value ? table[i].value : "", table[i].has_arg == 2 ? "]" : "");
                (void) printf("  %-34s %s\n", left, table[i].what);
        }
        (void) printf(
                "\nSizes: K M G. Times: ms s m h d. The exit code is the command's; 124 time limit, 125 Gabion's own\n"
                "error, 126 not executable, 127 not found, 128+N ended by signal N.\n");
}

static int env_add(struct words *w, const char *text) {
        static char space[ENV_TEXT];
        static size_t used;
        const char *eq = strchr(text, '=');
        size_t n = eq ? (size_t) (eq - text) : strlen(text);
        int k;

        if (n == 0)
                return cli_usage("run", "-e '%.40s': NAME=VALUE or NAME is expected", text);
        if (w->n_env >= RUN_ENV - 16)
                return cli_usage("run", "-e: at most %d variables", RUN_ENV - 16);
        if (eq) {
                w->env[w->n_env++] = text;
                return -1;
        }
        k = snprintf(space + used, sizeof(space) - used, "%s=%s", text, cli_env(text));
        if (k < 0 || (size_t) k >= sizeof(space) - used)
                return cli_usage("run", "-e %.40s: the caller's value is too long", text);
        w->env[w->n_env++] = space + used;
        used += (size_t) k + 1;
        return -1;
}

static int off_add(struct run_options *o, const char *text) {
        if (str_eq(text, "landlock"))
                o->off |= PLAN_OFF_LANDLOCK;
        else if (str_eq(text, "io"))
                o->off |= PLAN_OFF_IO;
        else
                return cli_usage("run", "--off '%.40s': landlock or io is expected", text);
        return -1;
}

/* Options that take a value and store it, or set a switch. -1: go on. */
static int take(int key, const char *arg, struct words *w, struct run_options *o) {
        switch (key) {
        case 'm':
                w->limits[0] = arg;
                break;
        case OPT_CPUS:
        case OPT_PIDS:
        case OPT_DISK:
        case OPT_TIMEOUT:
        case OPT_OUTPUT:
        case OPT_IO:
        case OPT_FILES:
                w->limits[key - OPT_CPUS + 1] = arg;
                break;
        case 'v':
                if (w->n_mounts == POLICY_MOUNTS)
                        return cli_usage("run", "-v: at most %d mounts", POLICY_MOUNTS);
                w->mounts[w->n_mounts++] = arg;
                break;
        case 'e':
                return env_add(w, arg);
        case OPT_OFF:
                return off_add(o, arg);
        case OPT_LIMITS:
                if (!str_eq(arg, "cgroup") && !str_eq(arg, "rlimit"))
                        return cli_usage("run", "--limits '%.40s': cgroup or rlimit is expected", arg);
                o->off |= str_eq(arg, "rlimit") ? PLAN_OFF_CGROUP | PLAN_OFF_IO : 0;
                break;
        default:
                if (key >= CLI_NET && key < CLI_NET_END)
                        return cli_net_take(key, arg, &w->net, o);
                return cli_usage("run", "unknown option");
        }
        return -1;
}

static int take_simple(int key, const char *arg, struct words *w, struct run_options *o) {
        switch (key) {
        case 'w':
                o->cwd = arg;
                break;
        case 't':
                o->tty = true;
                break;
        case 'q':
                o->quiet = true;
                break;
        case 'i':
        case OPT_RM:
                break;
        case OPT_NO_STDIN:
                o->no_stdin = true;
                break;
        case OPT_NAME:
                o->name = arg;
                break;
        case OPT_POLICY:
                w->policy = arg;
                break;
        case OPT_TEMPLATE:
                w->template = arg;
                break;
        case OPT_USER:
                w->user = arg;
                break;
        case OPT_SYSCALLS:
                w->syscalls = arg;
                break;
        case OPT_JSON:
                w->json = arg ? arg : "";
                break;
        case OPT_EVIDENCE:
                o->evidence_path = arg;
                break;
        case OPT_SHOW:
                o->show_evidence = true;
                break;
        case OPT_AUDIT:
                o->audit = arg;
                break;
        case OPT_TENANT:
                o->tenant = arg;
                break;
        case OPT_SENSITIVE:
                o->sensitive_mounts = true;
                break;
#ifdef GABION_WEAKEN
        case OPT_WEAKEN:
                o->weaken = sandbox_weaken_parse(arg);
                break;
#endif
        default:
                return take(key, arg, w, o);
        }
        return -1;
}

/* The policy: defaults, then the file, then the flags. */
static int policy_fill(const struct words *w, struct policy *p, struct run_options *o, struct err *err) {
        int r = 0;

        policy_default(p);
        if (w->policy)
                r = policy_read_file(w->policy, p, err);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(limit_names); i++)
                if (w->limits[i])
                        r = policy_set_limit(&p->limits, limit_names[i], w->limits[i], err);
        if (r == 0 && w->user)
                r = policy_parse_user(w->user, &p->user, err);
        if (r == 0 && w->syscalls)
                r = policy_parse_syscalls(w->syscalls, &p->syscalls, err);
        if (r == 0 && w->template && !str_eq(w->template, "host"))
                r = err_set(err, -EINVAL, ERR_INVALID, "--template '%.40s': only 'host' is available in this build",
                            w->template);
        for (size_t i = 0; r == 0 && i < w->n_mounts; i++) {
                if (p->n_mounts == POLICY_MOUNTS)
                        return err_set(err, -E2BIG, ERR_LIMIT, "-v: at most %d mounts", POLICY_MOUNTS);
                r = policy_parse_mount(w->mounts[i], &p->mounts[p->n_mounts], err);
                p->n_mounts += r == 0;
        }
        return r < 0 ? r : cli_net_fill(&w->net, p, o, err);
}

static bool env_has(const struct words *w, const char *prefix) {
        for (size_t i = 0; i < w->n_env; i++)
                if (str_has_prefix(w->env[i], prefix))
                        return true;
        return false;
}

/* What every program expects to find; nothing of the caller's. */
static void env_fill(struct words *w, const struct run_options *o) {
        static char term[64];
        bool root = o->policy->user == POLICY_USER_ROOT;
        const char *const defaults[][2] = {
                { "PATH=", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
                { "HOME=", root ? "HOME=/root" : "HOME=/home/user" },
                { "USER=", root ? "USER=root" : "USER=user" },
                { "LANG=", "LANG=C.UTF-8" },
                /* Leak checking needs ptrace, which the default profile refuses; the rest of ASan works. */
                { "ASAN_OPTIONS=",
                  o->policy->syscalls == POLICY_SYSCALLS_DEBUG ? NULL : "ASAN_OPTIONS=detect_leaks=0" },
                { "TERM=", o->tty ? term : NULL },
        };

        (void) snprintf(term, sizeof(term), "TERM=%.50s", cli_env("TERM")[0] ? cli_env("TERM") : "xterm");
        for (size_t i = 0; i < ARRAY_SIZE(defaults); i++)
                if (defaults[i][1] && !env_has(w, defaults[i][0]))
                        w->env[w->n_env++] = defaults[i][1];
        w->env[w->n_env] = NULL;
}

static bool name_ok(const char *s) {
        size_t n = strlen(s);

        return n > 0 && n < PLAN_HOSTNAME && s[0] != '-' && s[n - 1] != '-' &&
               strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == n;
}

static int words_read(int argc, char **argv, struct words *w, struct run_options *o) {
        struct option longs[ARRAY_SIZE(table) + 2] = { 0 };
        int key, r = -1;

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                longs[i] = (struct option){ table[i].name, table[i].has_arg, NULL, table[i].key };
#ifdef GABION_WEAKEN
        longs[ARRAY_SIZE(table)] = (struct option){ "weaken", 1, NULL, OPT_WEAKEN };
#endif
        opterr = 0;
        optind = 1;
        while (r == -1 && (key = getopt_long(argc, argv, "+:v:e:w:m:tiqh", longs, NULL)) != -1) {
                if (key == 'h') {
                        help(argv[0]);
                        return 0;
                }
                if (key == ':')
                        return cli_usage(argv[0], "option '%.40s' needs a value", cli_refused(argc, argv));
                if (key == '?')
                        return cli_usage(argv[0], "unknown option '%.40s'", cli_refused(argc, argv));
                r = take_simple(key, optarg, w, o);
        }
        return r;
}

int cli_run_options(int argc, char **argv, struct run_options *ret, const char **ret_json) {
        static struct policy policy;
        static struct words w;
        struct err err = { 0 };
        int r;

        memset(ret, 0, sizeof(*ret));
        ret->policy = &policy;
        r = words_read(argc, argv, &w, ret);
        if (r != -1)
                return r;
        if (policy_fill(&w, &policy, ret, &err) < 0)
                return cli_fail(&err);
        if (!argv[optind] || !argv[optind][0])
                return cli_usage(argv[0], "COMMAND is missing");
        if (ret->name && !name_ok(ret->name))
                return cli_usage(argv[0], "--name: 1 to %d letters, digits and dashes", PLAN_HOSTNAME - 1);
        if (ret->cwd && ret->cwd[0] != '/')
                return cli_usage(argv[0], "-w '%.40s': an absolute path inside the sandbox is expected", ret->cwd);
        env_fill(&w, ret);
        ret->argv = (const char *const *) argv + optind;
        ret->env = w.env;
        ret->home = cli_env("HOME")[0] == '/' ? cli_env("HOME") : NULL;
        ret->want_details = w.json != NULL;
        *ret_json = w.json;
        return -1;
}
