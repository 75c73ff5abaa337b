/*
 * main.c - gabion-notary: options, isolation in stages, then the loop.
 *
 * It starts as root only to make its directories and its socket; then it is its own user, sees its log and nothing
 * else, and never comes back.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "notary/isolate.h"
#include "notary/notary.h"
#include "policy/policy.h"

#define RUN_DIR "/run/gabion"
#define SOCKET RUN_DIR "/notary/socket"
#define LOG "/var/lib/gabion/audit"

enum { OWN_ERROR = 125 };

struct words {
        struct notary_settings s;
        const char *socket, *user;
        uid_t uid;
        gid_t gid;
        bool no_landlock;
        pid_t parent; /* with which to end; 0: none */
};

static int help(void) {
        (void) printf("Usage: gabion-notary [OPTIONS]\n\n"
                      "Owns the audit log and its signing key; writers connect to its socket.\n\n"
                      "  --log DIR                the log (default " LOG ")\n"
                      "  --socket PATH            where it listens (default " SOCKET ")\n"
                      "  --user NAME              whom to become; needs root (default: nobody else)\n"
                      "  --readers GROUP          a group that may read the log (default: none)\n"
                      "  --writer USER[=TENANT]   who else may write, besides root and the notary's user; repeatable\n"
                      "  --keep [TENANT=]TIME     drop records that are older; repeatable (default: keep all)\n"
                      "  --file-size SIZE         begin a new file beyond this size (default 64M)\n"
                      "  --file-age TIME          or beyond this age (default 1d)\n"
                      "  --node NAME              name of this machine in the records (default: its host name)\n"
                      "  --with-parent PID        end when that process, the parent, has ended\n"
                      "  --without-landlock       for kernels that have none\n");
        return 0;
}

/* Local accounts only: a lookup over the network has no place in front of an audit log. */
static int user_find(const char *name, uid_t *ret_uid, gid_t *ret_gid, struct err *err) {
        FILE *f = fopen("/etc/passwd", "re");
        struct passwd *p = NULL;
        uint64_t v;

        while (f && (p = fgetpwent(f)) && !str_eq(p->pw_name, name))
                ;
        if (p) {
                *ret_uid = p->pw_uid;
                *ret_gid = p->pw_gid;
        }
        if (f)
                (void) fclose(f);
        if (p)
                return 0;
        if (str_to_u64(name, UINT32_MAX - 1, &v) < 0)
                return err_set(err, -ENOENT, ERR_INVALID, "user '%.40s' is not in /etc/passwd", name);
        *ret_uid = (uid_t) v;
        *ret_gid = (gid_t) v;
        return 0;
}

static int group_find(const char *name, gid_t *ret, struct err *err) {
        FILE *f = fopen("/etc/group", "re");
        struct group *g = NULL;
        uint64_t v;

        while (f && (g = fgetgrent(f)) && !str_eq(g->gr_name, name))
                ;
        if (g)
                *ret = g->gr_gid;
        if (f)
                (void) fclose(f);
        if (g)
                return 0;
        if (str_to_u64(name, UINT32_MAX - 1, &v) < 0)
                return err_set(err, -ENOENT, ERR_INVALID, "group '%.40s' is not in /etc/group", name);
        *ret = (gid_t) v;
        return 0;
}

static int writer_add(struct words *w, const char *text, struct err *err) {
        char user[AUDIT_NAME], tenant[AUDIT_NAME] = "";
        const char *eq = strchr(text, '=');
        gid_t gid;
        int r;

        (void) snprintf(user, sizeof(user), "%.*s", eq ? (int) (eq - text) : 63, text);
        if (eq)
                (void) snprintf(tenant, sizeof(tenant), "%.63s", eq + 1);
        if (w->s.n_writers == NOTARY_WRITERS || (eq && !audit_tenant_ok(tenant)))
                return err_set(err, -EINVAL, ERR_INVALID, "--writer '%.60s': USER or USER=TENANT, at most %d", text,
                               NOTARY_WRITERS);
        r = user_find(user, &w->s.writers[w->s.n_writers].uid, &gid, err);
        (void) str_copy(w->s.writers[w->s.n_writers].tenant, AUDIT_NAME, tenant);
        w->s.n_writers += r == 0;
        return r;
}

static int keep_add(struct words *w, const char *text, struct err *err) {
        char tenant[AUDIT_NAME] = "";
        const char *eq = strchr(text, '='), *time = eq ? eq + 1 : text;
        int r;

        if (eq)
                (void) snprintf(tenant, sizeof(tenant), "%.*s", (int) (eq - text), text);
        if (w->s.n_keeps == NOTARY_KEEPS || (eq && !audit_tenant_ok(tenant)))
                return err_set(err, -EINVAL, ERR_INVALID, "--keep '%.60s': TIME or TENANT=TIME, at most %d", text,
                               NOTARY_KEEPS);
        r = policy_parse_duration_ms("--keep", time, 1000, UINT64_MAX >> 12, &w->s.keeps[w->s.n_keeps].keep_ms, err);
        (void) str_copy(w->s.keeps[w->s.n_keeps].tenant, AUDIT_NAME, tenant);
        w->s.n_keeps += r == 0;
        return r;
}

static int parent_take(const char *arg, struct words *w, struct err *err) {
        uint64_t pid;

        if (str_to_u64(arg, INT32_MAX, &pid) < 0 || pid == 0)
                return err_set(err, -EINVAL, ERR_INVALID, "--with-parent '%.20s': is no process", arg);
        w->parent = (pid_t) pid;
        return 0;
}

static int take(int key, const char *arg, struct words *w, struct err *err) {
        switch (key) {
        case 'l':
                w->s.log.dir = arg;
                return 0;
        case 's':
                w->socket = arg;
                return 0;
        case 'u':
                w->user = arg;
                return user_find(arg, &w->uid, &w->gid, err);
        case 'r':
                return group_find(arg, &w->s.log.readers, err);
        case 'w':
                return writer_add(w, arg, err);
        case 'k':
                return keep_add(w, arg, err);
        case 'z':
                return policy_parse_size("--file-size", arg, 4096, 1ull << 40, &w->s.log.segment_bytes, err);
        case 'a':
                return policy_parse_duration_ms("--file-age", arg, 1000, UINT64_MAX >> 12, &w->s.log.segment_age_ms,
                                                err);
        case 'n':
                w->s.log.node = arg;
                return 0;
        case 'p':
                return parent_take(arg, w, err);
        case 'L':
                w->no_landlock = true;
                return 0;
        default:
                return err_set(err, -EINVAL, ERR_INVALID, "unknown option; see --help");
        }
}

static int words_read(int argc, char **argv, struct words *w, struct err *err) {
        static const struct option longs[] = {
                { "log", 1, NULL, 'l' },
                { "socket", 1, NULL, 's' },
                { "user", 1, NULL, 'u' },
                { "readers", 1, NULL, 'r' },
                { "writer", 1, NULL, 'w' },
                { "keep", 1, NULL, 'k' },
                { "node", 1, NULL, 'n' },
                { "file-size", 1, NULL, 'z' },
                { "file-age", 1, NULL, 'a' },
                { "help", 0, NULL, 'h' },
                { "without-landlock", 0, NULL, 'L' },
                { "with-parent", 1, NULL, 'p' },
                { 0 },
        };
        int key, r = 0;

        opterr = 0;
        while (r == 0 && (key = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
                if (key == 'h')
                        return help() + 1;
                if (key == ':' || key == '?')
                        return err_set(err, -EINVAL, ERR_INVALID, "option '%.40s' is unknown or needs a value",
                                       argv[optind - 1]);
                r = take(key, optarg, w, err);
        }
        if (r == 0 && argv[optind])
                r = err_set(err, -EINVAL, ERR_INVALID, "'%.40s': no arguments are expected", argv[optind]);
        return r;
}

/* A directory of ours, given to the user that we will be. Returns its descriptor. */
static int dir_make(const struct words *w, const char *path, mode_t mode, struct err *err) {
        AUTO_FD int fd = -1;
        bool made = mkdir(path, mode) == 0;

        if (!made && errno != EEXIST)
                return err_set(err, -errno, ERR_INTERNAL, "%.150s: %s", path, strerror(errno));
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || (made && fchmod(fd, mode) < 0) || (made && w->user && fchown(fd, w->uid, w->gid) < 0))
                return err_set(err, -errno, ERR_INTERNAL, "%.150s: %s", path, strerror(errno));
        return TAKE_FD(fd);
}

/* The socket's directory: one of the notary's own, so that it can remove the socket when it is another user. */
static int socket_make(const struct words *w, int *ret_dir_fd, struct err *err) {
        char dir[LEDGER_PATH];
        const char *slash = strrchr(w->socket, '/');

        if (!slash || slash == w->socket || strlen(w->socket) >= sizeof(dir))
                return err_set(err, -EINVAL, ERR_INVALID, "--socket '%.60s': an absolute path is expected", w->socket);
        if (str_eq(w->socket, SOCKET) && mkdir(RUN_DIR, 0700) < 0 && errno != EEXIST)
                return err_set(err, -errno, ERR_INTERNAL, RUN_DIR ": %s", strerror(errno));
        (void) snprintf(dir, sizeof(dir), "%.*s", (int) (slash - w->socket), w->socket);
        *ret_dir_fd = dir_make(w, dir, 0755, err);
        return *ret_dir_fd < 0 ? *ret_dir_fd : ipc_listen(w->socket, 0666, err);
}

static int signals_take(struct err *err) {
        sigset_t set;
        int fd;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGHUP);
        (void) sigaddset(&set, SIGPIPE);
        (void) sigaddset(&set, SIGXFSZ); /* a log beyond the size limit is a failed write, not our death */
        if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "signals: %s", strerror(errno));
        (void) sigdelset(&set, SIGPIPE);
        (void) sigdelset(&set, SIGXFSZ);
        fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return fd < 0 ? err_set(err, -errno, ERR_INTERNAL, "signals: %s", strerror(errno)) : fd;
}

static int isolate(const struct words *w, int log_fd, int socket_dir_fd, struct err *err) {
        int r = 0;

        if (w->user || geteuid() == 0)
                r = isolate_user(w->user ? w->uid : geteuid(), w->user ? w->gid : getegid(), w->s.log.readers, err);
        if (r == 0 && w->parent)
                r = isolate_with_parent(w->parent, err);
        if (r == 0 && !w->no_landlock)
                r = isolate_fs(log_fd, socket_dir_fd, err);
        return r;
}

/*
 * Every start and every command waits for its record, which takes little of a processor: it has it at once, whoever
 * else computes (docs/decisions/031-notary-first.md). Not so the thread that reads long logs. An ordinary user has no
 * right to this, and goes without.
 */
static void come_first(void) {
        static const struct sched_param lowest = { .sched_priority = 1 };

        (void) sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest);
}

static int run(struct words *w, struct err *err) {
        AUTO_FD int log_fd = dir_make(w, w->s.log.dir, 0700, err), socket_dir_fd = -1, listen_fd = -1, stop_fd = -1;
        struct notary *n = NULL;
        int r = log_fd;

        if (r >= 0)
                r = listen_fd = socket_make(w, &socket_dir_fd, err);
        if (r >= 0)
                r = stop_fd = signals_take(err);
        come_first();
        if (r >= 0)
                r = isolate(w, log_fd, socket_dir_fd, err);
        /* From here on the log is where we are: folders above it may be closed to the user that we are now. */
        if (r >= 0 && fchdir(log_fd) < 0)
                r = err_set(err, -errno, ERR_INTERNAL, "%.150s: %s", w->s.log.dir, strerror(errno));
        w->s.log.dir = ".";
        if (r >= 0)
                r = notary_new(&w->s, &n, err);
        if (r >= 0)
                r = isolate_calls(err);
        if (r < 0) {
                (void) notary_free(n);
                return r;
        }
        (void) fprintf(stderr, "gabion-notary: ready on %s\n", w->socket);
        r = notary_serve(n, listen_fd, stop_fd, err);
        (void) unlinkat(socket_dir_fd, strrchr(w->socket, '/') + 1, 0);
        (void) notary_free(n);
        return r;
}

int main(int argc, char **argv) {
        static struct words w = { .s.log = { .dir = LOG, .readers = (gid_t) -1 }, .s.recover = true, .socket = SOCKET };
        struct err err = { 0 };
        int r = words_read(argc, argv, &w, &err);

        if (r > 0)
                return 0;
        if (r == 0)
                r = isolate_start(&err);
        if (r == 0)
                r = run(&w, &err);
        if (r < 0)
                (void) fprintf(stderr, "gabion-notary: %s\n", err.msg);
        return r < 0 ? OWN_ERROR : 0;
}
