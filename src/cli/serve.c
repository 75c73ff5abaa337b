/*
 * serve.c - `gabion serve`: starts gabion-warden, gabion-notary and gabiond, starts them again when they die, and stops
 * them in order.
 *
 * They run in process groups of their own, so that a key at the terminal reaches only us, and end with us if we are
 * killed: sandboxes go on, and the next start finds them. An orderly stop ends gabiond first, which ends the sandboxes
 * (unless --keep), then the warden, then what it kept ready.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/user.h"
#include "cli/cli.h"
#include "ipc/ipc.h"

enum {
        ARGS = 160,
        CHILD_STACK = 64 * 1024,
        UP_MS = 5000,     /* for the warden to listen */
        EARLY_MS = 3000,  /* whoever ends so soon after the very first start will not do better the next time */
        STEADY_MS = 1000, /* whoever lived so long is started again at once */
        BACKOFF_MS = 20,  /* doubled with each early death */
        BACKOFF_MAX_MS = 5000,
        STOP_MS = 20000,
        NAP_MS = 20,
        KEPT = 16,
        NOTARY_UID = 65532, /* if there is no user gabion-notary */
};

struct child {
        const char *name, *beside; /* program; its folder in a build tree */
        char path[CLI_PROGRAM];
        char *argv[ARGS];
        size_t argc;
        pid_t pid; /* 0: not running */
        int status;
        uint64_t began_ms, due_ms;
        unsigned deaths; /* in a row */
        bool first;
};

struct serve {
        struct child warden, notary, daemon;
        char run[64], socket[96], uid[16], pid[16];
        char log[CLI_PROGRAM], log_socket[96];
        const char *user, *data;
        const char *audit;      /* "off", the socket of a notary, or a directory; NULL: in the data directory */
        const char *kept[KEPT]; /* --audit-keep */
        size_t n_kept;
        bool keep, no_landlock;
};

static const struct option options[] = {
        { "listen", required_argument, NULL, 'd' },
        { "data", required_argument, NULL, 'd' },
        { "key-file", required_argument, NULL, 'd' },
        { "certificate", required_argument, NULL, 'd' },
        { "certificate-key", required_argument, NULL, 'd' },
        { "user", required_argument, NULL, 'u' },
        { "domain", required_argument, NULL, 'd' },
        { "policy", required_argument, NULL, 'd' },
        { "ceiling", required_argument, NULL, 'd' },
        { "pool", required_argument, NULL, 'd' },
        { "config", required_argument, NULL, 'd' },
        { "log", required_argument, NULL, 'd' },
        { "upstream-proxy", required_argument, NULL, 'w' },
        { "bind", required_argument, NULL, 'w' },
        { "ca-bundle", required_argument, NULL, 'w' },
        { "resolve", required_argument, NULL, 'w' },
        { "audit", required_argument, NULL, 'a' },
        { "audit-keep", required_argument, NULL, 'K' },
        { "run", required_argument, NULL, 'r' },
        { "keep", no_argument, NULL, 'k' },
        { "without-landlock", no_argument, NULL, 'l' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
};

static int help(void) {
        (void) printf(
                "Usage: gabion serve [OPTIONS]\n\n"
                "Makes this machine a sandbox service that speaks the E2B protocol. Needs root.\n\n"
                "      --listen [tls:]ADDRESS:PORT  where clients come, or unix:PATH; repeatable (default 127.0.0.1:3000)\n"
                "      --certificate FILE     of tls: listeners, with its chain (PEM)\n"
                "      --certificate-key FILE its key (PEM)\n"
                "      --data DIR             store and keys (default /var/lib/gabion)\n"
                "      --key-file FILE        first start: write the API key there instead of showing it\n"
                "      --user NAME|UID        whom the API runs as (default: gabion, else 65533)\n"
                "      --domain NAME[:PORT]   under which sandboxes' ports are reached\n"
                "      --policy FILE          limits of every sandbox\n"
                "      --ceiling NET          network that no sandbox gets beyond: none, public, packages, FILE\n"
                "      --upstream-proxy URL   through which sandboxes go out: http:// or socks5://\n"
                "      --bind ADDRESS         from which they go out\n"
                "      --ca-bundle FILE       certificates that they trust instead of the host's\n"
                "      --resolve NAME:PORT=ADDRESS:PORT  a name that leads elsewhere; repeatable\n"
                "      --pool N               sandboxes that are kept ready (default 4)\n"
                "      --config FILE          settings; options after it win\n"
                "      --log LEVEL            error, warning or info (default)\n"
                "      --audit DIR|SOCKET|off the audit log (default DATA/audit), or a notary that runs already\n"
                "      --audit-keep [TENANT=]TIME  drop older records (default: keep all)\n"
                "      --run DIR              sockets (default /run/gabion-warden)\n"
                "      --keep                 sandboxes go on when the service stops\n"
                "      --without-landlock     for kernels that have none\n"
                "      --help\n\n"
                "The first start shows an API key, once, and the variables that clients need. See gabion-serve(8).\n");
        return 0;
}

static uint64_t now_ms(void) {
        return clock_mono_ns() / 1000000;
}

static void add(struct child *c, const char *word) {
        if (c->argc < ARGS - 1) /* config_set() has limits of its own, far below */
                c->argv[c->argc++] = (char *) (uintptr_t) word;
}

/* --- children --- */

static int child_main(void *arg) {
        struct child *c = arg;
        static char *const env[] = { NULL };
        sigset_t none;

        (void) sigemptyset(&none);
        if (setpgid(0, 0) < 0 || sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
            sigprocmask(SIG_SETMASK, &none, NULL) < 0)
                return 1;
        (void) execve(c->path, c->argv, env);
        return 127;
}

static int child_start(struct child *c, struct err *err) {
        static uint8_t stack[CHILD_STACK] __attribute__((aligned(16)));
        const struct sys_clone_args how = { .exit_signal = SIGCHLD,
                                            .stack = (uintptr_t) stack,
                                            .stack_size = sizeof(stack) };
        long pid = sys_clone_run(&how, child_main, c); /* a copy of this process: the stack is its own */

        if (pid < 0)
                return err_set(err, (int) pid, ERR_INTERNAL, "%s: %s", c->name, strerror((int) -pid));
        c->pid = (pid_t) pid;
        c->began_ms = now_ms();
        c->due_ms = 0;
        return 0;
}

/* Who has ended? Says so. */
static void reap(struct serve *s, bool stopping) {
        struct child *all[] = { &s->warden, &s->notary, &s->daemon };
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                        struct child *c = all[i];
                        uint64_t lived = now_ms() - c->began_ms;

                        if (c->pid != pid)
                                continue;
                        c->pid = 0;
                        c->status = status;
                        c->first = c->first && lived < EARLY_MS;
                        c->deaths = lived >= STEADY_MS ? 0 : c->deaths + 1;
                        c->due_ms = now_ms() + (c->deaths > 7 ? BACKOFF_MAX_MS : (uint64_t) BACKOFF_MS << c->deaths);
                        if (!stopping)
                                (void) fprintf(stderr, "gabion: %s has ended (%s %d)%s\n", c->name,
                                               WIFSIGNALED(status) ? "signal" : "status",
                                               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                                               c->first ? "" : "; starting it again");
                }
}

static bool answers(const char *socket) {
        struct err err;
        AUTO_FD int fd = ipc_connect(socket, &err);

        return fd >= 0;
}

static void nap(void) {
        static const struct timespec t = { .tv_nsec = NAP_MS * 1000000L };

        (void) nanosleep(&t, NULL);
}

static int start_one(struct serve *s, struct child *c, const char *socket, struct err *err) {
        uint64_t until = now_ms() + UP_MS;
        int r = child_start(c, err);

        while (r == 0 && c->pid && !answers(socket) && now_ms() < until) {
                nap();
                reap(s, false);
        }
        return r == 0 && !c->pid
                       ? err_set(err, -ECHILD, ERR_INTERNAL, "%s does not start; its message is above", c->name)
                       : r;
}

static int start_all(struct serve *s, struct err *err) {
        int r = start_one(s, &s->warden, s->socket, err);

        if (r == 0 && s->notary.argc > 0)
                r = start_one(s, &s->notary, s->log_socket, err);
        return r < 0 ? r : child_start(&s->daemon, err);
}

/* --- the loop --- */

static void stop_child(struct serve *s, struct child *c) {
        uint64_t until = now_ms() + STOP_MS;

        if (c->pid)
                (void) sys_kill(c->pid, SIGTERM);
        while (c->pid && now_ms() < until) {
                nap();
                reap(s, true);
        }
        if (!c->pid)
                return;
        (void) fprintf(stderr, "gabion: %s does not stop; it is killed\n", c->name);
        (void) sys_kill(c->pid, SIGKILL);
        while (c->pid) {
                nap();
                reap(s, true);
        }
}

/* What the warden kept ready, and what gabiond could not end any more. */
static void end_rest(struct serve *s) {
        struct err err = { 0 };
        uint64_t until = now_ms() + STOP_MS;

        add(&s->warden, "--end-all");
        if (child_start(&s->warden, &err) < 0) {
                (void) cli_fail(&err);
                return;
        }
        while (s->warden.pid && now_ms() < until) {
                nap();
                reap(s, true);
        }
        if (s->warden.pid)
                stop_child(s, &s->warden);
}

static void stop(struct serve *s) {
        stop_child(s, &s->daemon);
        stop_child(s, &s->notary);
        stop_child(s, &s->warden);
        if (!s->keep)
                end_rest(s);
}

static void start_due(struct serve *s) {
        struct child *all[] = { &s->warden, &s->notary, &s->daemon };
        struct err err = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                if (!all[i]->pid && all[i]->argc > 0 && now_ms() >= all[i]->due_ms && child_start(all[i], &err) < 0) {
                        (void) cli_fail(&err);
                        all[i]->due_ms = now_ms() + BACKOFF_MAX_MS;
                }
}

/* Until a signal says that it is enough. 0, or the exit code of a start that never was one. */
static int supervise(struct serve *s, const sigset_t *signals) {
        static const struct timespec soon = { .tv_nsec = NAP_MS * 1000000L };

        for (;;) {
                bool waiting = !s->warden.pid || !s->daemon.pid || (s->notary.argc > 0 && !s->notary.pid);
                int sig = waiting ? sigtimedwait(signals, NULL, &soon) : sigwaitinfo(signals, NULL);

                if (sig == SIGTERM || sig == SIGINT)
                        return 0;
                reap(s, false);
                if (!s->daemon.pid && s->daemon.first && WIFEXITED(s->daemon.status))
                        return CLI_OWN_ERROR; /* it has said why */
                start_due(s);
        }
}

/* -1: go on; else the exit code. */
static int read_options(int argc, char **argv, struct serve *s) {
        static char dashed[ARRAY_SIZE(options)][24]; /* "--listen", as gabiond is told */
        int key, at;

        for (size_t i = 0; options[i].name; i++)
                (void) snprintf(dashed[i], sizeof(dashed[i]), "--%s", options[i].name);

        optind = opterr = 0;
        while ((key = getopt_long(argc, argv, "", options, &at)) != -1)
                switch (key) {
                case 'h':
                        return help();
                case 'r':
                        if (optarg[0] != '/' || str_copy(s->run, sizeof(s->run), optarg) < 0)
                                return cli_usage("serve", "--run: must be an absolute path of at most %zu characters",
                                                 sizeof(s->run) - 1);
                        break;
                case 'k':
                        s->keep = true;
                        add(&s->daemon, "--keep");
                        break;
                case 'a':
                        if (!str_eq(optarg, "off") && optarg[0] != '/')
                                return cli_usage("serve", "--audit: an absolute path or off is expected");
                        s->audit = optarg;
                        break;
                case 'K':
                        if (s->n_kept == KEPT)
                                return cli_usage("serve", "--audit-keep: at most %d", KEPT);
                        s->kept[s->n_kept++] = optarg;
                        break;
                case 'l':
                        s->no_landlock = true;
                        add(&s->daemon, "--without-landlock");
                        break;
                case 'u':
                        s->user = optarg;
                        add(&s->daemon, "--user");
                        add(&s->daemon, optarg);
                        break;
                case 'w':
                        add(&s->warden, dashed[at]);
                        add(&s->warden, optarg);
                        break;
                case 'd':
                        if (str_eq(options[at].name, "data"))
                                s->data = optarg;
                        add(&s->daemon, dashed[at]);
                        add(&s->daemon, optarg);
                        break;
                default:
                        return cli_usage("serve", "'%.40s': unknown option, or one without its value",
                                         argv[optind - 1]);
                }
        return optind < argc ? cli_usage("serve", "'%.40s' is no option", argv[optind]) : -1;
}

/* The notary of this service: its own user, so that the API cannot write to the log, nor read its key. */
static int audit_prepare(struct serve *s, uid_t uid, gid_t gid, struct err *err) {
        static char user[16] = "gabion-notary";
        struct stat st;
        uid_t notary_uid;
        gid_t notary_gid;

        add(&s->daemon, "--audit");
        if (s->audit && (str_eq(s->audit, "off") || (stat(s->audit, &st) == 0 && S_ISSOCK(st.st_mode)))) {
                add(&s->daemon, s->audit);
                return 0;
        }
        if (!s->audit && mkdir(s->data, 0700) == 0 && chown(s->data, uid, gid) < 0) /* as gabiond would make it */
                return err_set(err, -errno, ERR_INTERNAL, "%.150s: %s", s->data, strerror(errno));
        if (!user_find(user, &notary_uid, &notary_gid))
                (void) snprintf(user, sizeof(user), "%d", NOTARY_UID);
        (void) snprintf(s->log, sizeof(s->log), "%.400s%s", s->audit ? s->audit : s->data, s->audit ? "" : "/audit");
        (void) snprintf(s->log_socket, sizeof(s->log_socket), "%s/notary/socket", s->run);
        add(&s->daemon, s->log_socket);
        const char *const words[] = { s->notary.name, "--log",    s->log, "--socket",      s->log_socket, "--user",
                                      user,           "--writer", s->uid, "--with-parent", s->pid };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                add(&s->notary, words[i]);
        for (size_t i = 0; i < s->n_kept; i++) {
                add(&s->notary, "--keep");
                add(&s->notary, s->kept[i]);
        }
        if (s->no_landlock)
                add(&s->notary, "--without-landlock");
        return cli_program(s->notary.name, s->notary.beside, s->notary.path, err);
}

int cmd_serve(int argc, char **argv) {
        static struct serve s = { .warden = { .name = "gabion-warden", .beside = "warden", .first = true },
                                  .notary = { .name = "gabion-notary", .beside = "notary", .first = true },
                                  .daemon = { .name = "gabiond", .beside = "daemon", .first = true },
                                  .run = "/run/gabion-warden",
                                  .data = "/var/lib/gabion",
                                  .user = "" };
        struct err err = { 0 };
        sigset_t signals;
        bool made_up;
        uid_t uid;
        gid_t gid;
        int r;

        add(&s.warden, s.warden.name);
        add(&s.daemon, s.daemon.name);
        r = read_options(argc, argv, &s);
        if (r >= 0)
                return r;
        if (geteuid() != 0)
                return cli_usage("serve", "serve needs root, to make sandboxes for others");
        if (user_service(s.user, &uid, &gid, &made_up) < 0)
                return cli_usage("serve", "--user '%.40s': no such user, or root", s.user);
        if (made_up)
                (void) fprintf(stderr, "gabion: there is no user 'gabion'; the API runs as user %u\n", (unsigned) uid);
        (void) snprintf(s.uid, sizeof(s.uid), "%u", (unsigned) uid);
        (void) snprintf(s.socket, sizeof(s.socket), "%s/warden.sock", s.run);
        add(&s.warden, "--run");
        add(&s.warden, s.run);
        add(&s.warden, "--uid");
        add(&s.warden, s.uid);
        add(&s.daemon, "--warden");
        add(&s.daemon, s.socket);
        add(&s.daemon, "--with-parent");
        (void) snprintf(s.pid, sizeof(s.pid), "%d", (int) getpid());
        add(&s.daemon, s.pid);
        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigaddset(&signals, SIGINT);
        (void) sigaddset(&signals, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &signals, NULL);
        /* Sandboxes of a warden that was killed become our children, and somebody has to see them end. */
        (void) sys_prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        r = audit_prepare(&s, uid, gid, &err);
        if (r == 0)
                r = cli_program(s.warden.name, s.warden.beside, s.warden.path, &err);
        if (r == 0)
                r = cli_program(s.daemon.name, s.daemon.beside, s.daemon.path, &err);
        if (r < 0)
                return cli_fail(&err);
        r = start_all(&s, &err);
        r = r < 0 ? cli_fail(&err) : supervise(&s, &signals);
        stop(&s);
        return r;
}
