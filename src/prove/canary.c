/*
 * canary.c - plants a file, sockets and a process on the host before an attack, and looks at them afterwards. All of it
 * is in a directory of its own that only the caller can enter, and is removed whatever happened.
 */
#include "prove/canary.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"

static int oops(struct err *err, const char *what) {
        return err_set(err, -errno, ERR_INTERNAL, "canary: %s: %s", what, strerror(errno));
}

static int listen_unix(const char *name, bool abstract) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        size_t n = strlen(name);

        if (fd < 0 || n + 2 > sizeof(a.sun_path))
                return -1;
        memcpy(a.sun_path + (abstract ? 1 : 0), name, n);
        if (bind(fd, (struct sockaddr *) &a, (socklen_t) (offsetof(struct sockaddr_un, sun_path) + n + 1)) < 0 ||
            listen(fd, 8) < 0)
                return -1;
        return TAKE_FD(fd);
}

/* On the loopback address of one family; port 0: any, and *port says which. */
static int listen_tcp(int family, int *port) {
        struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
        struct sockaddr *a = family == AF_INET ? (struct sockaddr *) &v4 : (struct sockaddr *) &v6;
        socklen_t n = family == AF_INET ? sizeof(v4) : sizeof(v6);
        AUTO_FD int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        v4.sin_port = v6.sin6_port = htons((uint16_t) *port);
        if (fd < 0 || bind(fd, a, n) < 0 || listen(fd, 8) < 0 || getsockname(fd, a, &n) < 0)
                return -1;
        *port = ntohs(family == AF_INET ? v4.sin_port : v6.sin6_port);
        return TAKE_FD(fd);
}

static int process_start(struct canary *c, struct err *err) {
        c->pid = fork();
        if (c->pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        (void) pause();
        }
        return c->pid < 0 ? oops(err, "process") : 0;
}

int canary_plant(struct canary *c, struct err *err) {
        AUTO_FD int fd = -1;
        char id[ID_TEXT];

        *c = (struct canary){ .listeners = { -1, -1, -1, -1 },
                              .dir = "/tmp/gabion-prove.XXXXXX",
                              .probe_dir = "/tmp/gabion-probe.XXXXXX" };
        if (!mkdtemp(c->dir) || !mkdtemp(c->probe_dir))
                return oops(err, "directory below /tmp");
        (void) snprintf(c->probe, sizeof(c->probe), "%s/probe", c->probe_dir);
        (void) snprintf(c->statement, sizeof(c->statement), "%s/evidence", c->probe_dir);
        if (id_new(c->text) < 0 || id_new(id) < 0)
                return oops(err, "randomness");
        (void) snprintf(c->file, sizeof(c->file), "%s/flag", c->dir);
        (void) snprintf(c->socket, sizeof(c->socket), "%s/socket", c->dir);
        (void) snprintf(c->name, sizeof(c->name), "gabion-%s", id);
        /* Readable by everybody who gets there: only the sandbox's walls stand before it. */
        fd = open(c->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0 || fd_write_all(fd, c->text, strlen(c->text)) < 0 || chmod(c->dir, 0755) < 0 ||
            chmod(c->probe_dir, 0755) < 0)
                return oops(err, "file");
        c->listeners[0] = listen_unix(c->name, true);
        c->listeners[1] = listen_unix(c->socket, false);
        c->listeners[2] = listen_tcp(AF_INET, &c->port);
        c->listeners[3] = listen_tcp(AF_INET6, &c->port); /* a machine without IPv6 has none */
        for (int i = 0; i < 3; i++)
                if (c->listeners[i] < 0)
                        return oops(err, "socket");
        return process_start(c, err);
}

void check_add(struct prove_report *r, const char *what, bool ok, const char *note) {
        struct prove_check *c = &r->checks[r->n_checks++];

        *c = (struct prove_check){ .what = what, .ok = ok };
        if (note)
                (void) snprintf(c->note, sizeof(c->note), "%.118s", note);
}

static bool is_untouched(int listener) {
        struct pollfd p = { listener, POLLIN, 0 };

        return listener < 0 || poll(&p, 1, 0) == 0;
}

void canary_check(const struct canary *c, struct prove_report *r) {
        char text[64];
        struct stat st;

        check_add(r, "the canary file is unchanged",
                  fd_read_at(AT_FDCWD, c->file, text, sizeof(text)) == ID_LEN && str_eq(text, c->text) &&
                          stat(c->file, &st) == 0 && (st.st_mode & 07777) == 0644,
                  NULL);
        check_add(r, "nobody came to the host's abstract socket", is_untouched(c->listeners[0]), NULL);
        check_add(r, "nobody came to the host's unix socket", is_untouched(c->listeners[1]), NULL);
        check_add(r, "nobody came to the host's TCP port",
                  is_untouched(c->listeners[2]) && is_untouched(c->listeners[3]), NULL);
        check_add(r, "the canary process is alive", waitpid(c->pid, NULL, WNOHANG) == 0, NULL);
        /* Nothing inside knows the flag but by having read it, so it must not be in anything it printed. */
        check_add(r, "the flag was printed by no attempt",
                  memmem(r->output, sizeof(r->output), c->text, ID_LEN) == NULL, NULL);
}

void canary_remove(struct canary *c) {
        for (size_t i = 0; i < ARRAY_SIZE(c->listeners); i++)
                own_closep(&c->listeners[i]);
        if (c->pid > 0) {
                (void) kill(c->pid, SIGKILL);
                (void) waitpid(c->pid, NULL, 0);
        }
        (void) unlink(c->statement);
        (void) unlink(c->probe); /* names that were never made are not there */
        (void) rmdir(c->probe_dir);
        (void) unlink(c->file);
        (void) unlink(c->socket);
        (void) rmdir(c->dir);
}
