/*
 * main.c - gabiond: options, isolation in stages, then the loop.
 *
 * It may start as root, to listen where it wants and to make its directory; then it is its own user without any
 * capability, sees its data directory and nothing else, and never comes back. Whatever clients send is read after that.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/isolate.h"
#include "daemon/listen.h"
#include "daemon/route.h"
#include "daemon/setup.h"
#include "http/server.h"
#include "tls/tls.h"

enum {
        OWN_ERROR = 125,
        KEEP_BYTES = 4 << 20, /* of freed memory */
        OPTION_FILE = 256,
        OPTION_KEEP,
        OPTION_NO_LANDLOCK,
        OPTION_ROUTES,
        OPTION_VERSION,
        OPTION_HELP
};

static const struct option options[] = {
        /* those that config_set() knows by name */
        { "listen", required_argument, NULL, 0 },
        { "data", required_argument, NULL, 0 },
        { "warden", required_argument, NULL, 0 },
        { "audit", required_argument, NULL, 0 },
        { "key-file", required_argument, NULL, 0 },
        { "certificate", required_argument, NULL, 0 },
        { "certificate-key", required_argument, NULL, 0 },
        { "user", required_argument, NULL, 0 },
        { "domain", required_argument, NULL, 0 },
        { "policy", required_argument, NULL, 0 },
        { "ceiling", required_argument, NULL, 0 },
        { "pool", required_argument, NULL, 0 },
        { "log", required_argument, NULL, 0 },
        { "config", required_argument, NULL, OPTION_FILE },
        { "keep", no_argument, NULL, OPTION_KEEP },
        { "without-landlock", no_argument, NULL, OPTION_NO_LANDLOCK },
        { "with-parent", required_argument, NULL, 0 },
        { "routes", no_argument, NULL, OPTION_ROUTES },
        { "version", no_argument, NULL, OPTION_VERSION },
        { "help", no_argument, NULL, OPTION_HELP },
        { 0 },
};

static int help(void) {
        (void) printf(
                "Usage: gabiond [OPTIONS]\n\n"
                "The API of a Gabion server. 'gabion serve' starts it together with the warden.\n\n"
                "  --listen [tls:]ADDRESS:PORT  where clients come, or unix:PATH; repeatable (default 127.0.0.1:3000)\n"
                "  --certificate FILE      of tls: listeners, with its chain (PEM)\n"
                "  --certificate-key FILE  its key (PEM)\n"
                "  --data DIR              store and keys (default /var/lib/gabion)\n"
                "  --warden PATH           socket of the warden (default /run/gabion-warden/warden.sock)\n"
                "  --audit PATH|off        socket of the notary (default /run/gabion/notary/socket), or no audit log\n"
                "  --key-file FILE         first start: write the API key there (0600) instead of showing it\n"
                "  --user NAME|UID         whom to become (default: gabion, else 65533)\n"
                "  --domain NAME[:PORT]    under which sandboxes' ports are reached as PORT-ID.NAME\n"
                "  --policy FILE           limits and mounts of every sandbox\n"
                "  --ceiling none|public|packages|FILE  network that no sandbox gets beyond (default none)\n"
                "  --pool N                sandboxes that are kept ready (default 4)\n"
                "  --config FILE           settings; options after it win\n"
                "  --keep                  sandboxes go on when the service stops\n"
                "  --log error|warning|info  what is logged (default info)\n"
                "  --without-landlock      for kernels that have none\n"
                "  --with-parent PID       end at once when that process, the parent, has ended\n"
                "  --routes                print what is served, and end\n"
                "  --version, --help\n");
        return 0;
}

static int show_routes(void) {
        const struct route *r;

        for (size_t i = 0; (r = route_at(i)); i++)
                (void) printf("%s %s %s\n", r->method, r->pattern, verb_name(r->verb));
        return 0;
}

static int fail(const struct err *err) {
        (void) fprintf(stderr, "gabiond: %s\n", err->msg);
        return OWN_ERROR;
}

/* -1: go on; else the exit code. */
static int read_options(int argc, char **argv, struct config *c) {
        struct err err = { 0 };
        int key, at, r;

        while ((key = getopt_long(argc, argv, "", options, &at)) != -1) {
                r = 0;
                switch (key) {
                case 0:
                        r = config_set(c, options[at].name, optarg, &err);
                        break;
                case OPTION_FILE:
                        r = config_read(c, optarg, &err);
                        break;
                case OPTION_KEEP:
                        c->keep = true;
                        break;
                case OPTION_NO_LANDLOCK:
                        c->no_landlock = true;
                        break;
                case OPTION_ROUTES:
                        return show_routes();
                case OPTION_VERSION:
                        (void) printf("gabiond %s\n", GABION_VERSION);
                        return 0;
                case OPTION_HELP:
                        return help();
                default:
                        return OWN_ERROR; /* getopt has said it */
                }
                if (r < 0)
                        return fail(&err);
        }
        if (optind < argc) {
                (void) err_set(&err, -EINVAL, ERR_INVALID, "'%.40s' is no option", argv[optind]);
                return fail(&err);
        }
        return config_check(c, &err) < 0 ? fail(&err) : -1;
}

struct listeners {
        int fds[DAEMON_LISTENERS];
        size_t n;
};

/* All that needs privilege, or files outside of the data directory. */
static int prepare(struct daemon *d, struct listeners *l, int *ret_key_fd, struct err *err) {
        uid_t uid;
        gid_t gid;
        int r = setup_user(&d->config, &uid, &gid, err);

        if (r == 0)
                r = setup_data(&d->config, uid, gid, err);
        for (; r >= 0 && l->n < d->config.n_listen; l->n += r >= 0)
                r = l->fds[l->n] = listen_open(d->config.listen[l->n], d->config.listen[l->n], err);
        if (r >= 0 && d->config.certificate[0])
                r = tls_server_new(d->config.certificate, d->config.certificate_key, &d->tls, err);
        if (r < 0)
                return r;
        d->meminfo_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
        if (d->meminfo_fd < 0)
                return err_set(err, -errno, ERR_INTERNAL, "/proc/meminfo: %s", strerror(errno));
        *ret_key_fd = setup_key_file(&d->config, err);
        if (*ret_key_fd < -1)
                return *ret_key_fd;
        r = isolate_user(uid, gid, err);
        return r == 0 && d->config.parent ? isolate_with_parent((pid_t) d->config.parent, err) : r;
}

static struct bufferevent *wrap(struct event_base *base, int fd, void *tls) {
        return tls_server_open(tls, base, fd);
}

static void say_bye(struct bufferevent *bev, void *tls) {
        (void) tls;
        tls_server_bye(bev);
}

static int listen_all(struct daemon *d, struct listeners *l, struct err *err) {
        static struct http_transport tls = { .wrap = wrap, .finish = say_bye };
        int r = 0;

        tls.arg = d->tls;
        for (size_t i = 0; r == 0 && i < l->n; i++)
                r = http_server_listen(d->http, TAKE_FD(l->fds[i]), config_is_tls(d->config.listen[i]) ? &tls : NULL,
                                       err);
        return r;
}

static int start(struct daemon *d, struct listeners *l, struct err *err) {
        AUTO_FD int key_fd = -1;
        int r = isolate_start(err);

        if (r == 0)
                r = prepare(d, l, &key_fd, err);
        if (r == 0 && !d->config.no_landlock)
                r = isolate_files(d->config.data, err);
        if (r == 0)
                r = setup_store(d, key_fd, err);
        if (r == 0)
                r = daemon_open(d, err);
        if (r == 0)
                r = listen_all(d, l, err);
        return r < 0 ? r : isolate_calls(err);
}

int main(int argc, char **argv) {
        static struct daemon d = { .meminfo_fd = -1 };
        struct listeners l = { 0 };
        struct err err = { 0 };
        int r;

        /* What one request frees, the next one takes: given back each time, it would be faulted in each time. */
        (void) mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
        (void) mallopt(M_TOP_PAD, KEEP_BYTES / 4);
        (void) mallopt(M_MMAP_THRESHOLD, KEEP_BYTES / 4);
        config_default(&d.config);
        r = read_options(argc, argv, &d.config);
        if (r >= 0) {
                config_done(&d.config);
                return r;
        }
        d.log = (struct log){ .fd = STDERR_FILENO, .level = (enum log_level) d.config.level };
        r = start(&d, &l, &err);
        if (r == 0)
                r = daemon_run(&d, &err);
        for (size_t i = 0; i < l.n; i++)
                own_closep(&l.fds[i]);
        daemon_done(&d);
        return r < 0 ? fail(&err) : 0;
}
