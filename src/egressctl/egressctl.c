/*
 * egressctl.c - one gabion-egress process and the socket to it.
 *
 * Theory of operation. Requests are numbered; an answer carries its request's number, and records may come between. All
 * bytes from the process are hostile: it parses what strangers send, so it may have been taken over. What it says is
 * decoded by egressproto, and anything odd ends it.
 */
#include "egressctl/egressctl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/wr.h"
#include "egressproto/egressproto.h"
#include "ipc/ipc.h"
#include "json/json.h"

enum { READY_MS = 10000, ANSWER_MS = 5000, END_MS = 2000, CERTIFICATE_MAX = 64 * 1024 };

struct egressctl {
        egressctl_record_fn fn;
        void *arg;
        char program[EGRESSCTL_PATH];
        char *config;      /* the document */
        char *certificate; /* NULL: none, or not ready yet */
        pid_t pid;         /* 0: none */
        int fd, pid_fd, keep_fd;
        uint32_t request; /* the last one's number */
        uint32_t config_request;
        bool ready;
};

int egressctl_find(char dst[EGRESSCTL_PATH], struct err *err) {
        static const char *const beside[] = { "/../libexec/gabion/gabion-egress", "/../egress/gabion-egress" };
        char self[EGRESSCTL_PATH - 64];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        char *slash;

        self[n > 0 ? n : 0] = '\0';
        slash = strrchr(self, '/');
        if (slash)
                *slash = '\0';
        for (size_t i = 0; slash && i < ARRAY_SIZE(beside); i++) {
                (void) snprintf(dst, EGRESSCTL_PATH, "%s%s", self, beside[i]);
                if (access(dst, X_OK) == 0)
                        return 0;
        }
        if (str_copy(dst, EGRESSCTL_PATH, GABION_LIBEXEC "/gabion-egress") == 0 && access(dst, X_OK) == 0)
                return 0;
        return err_set(err, -ENOENT, ERR_NOT_FOUND,
                       "network: the program gabion-egress is not in %s; install it (make install), or run without "
                       "a network",
                       GABION_LIBEXEC);
}

/* Its own session: a key at the caller's terminal is for the command, not for the proxy. */
static int process_spawn(const char *program, int control, pid_t *ret) {
        char *const argv[] = { (char *) (uintptr_t) "gabion-egress", NULL };
        char *const envp[] = { NULL };
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attr;
        sigset_t none;
        int r;

        (void) sigemptyset(&none);
        if (posix_spawn_file_actions_init(&files) != 0)
                return -ENOMEM;
        if (posix_spawnattr_init(&attr) != 0) {
                (void) posix_spawn_file_actions_destroy(&files);
                return -ENOMEM;
        }
        r = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        if (r == 0)
                r = posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&files, control, EGP_FD);
        if (r == 0)
                r = posix_spawnattr_setsigmask(&attr, &none);
        if (r == 0)
                r = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
        if (r == 0)
                r = posix_spawn(ret, program, &files, &attr, argv, envp);
        (void) posix_spawnattr_destroy(&attr);
        (void) posix_spawn_file_actions_destroy(&files);
        return -r;
}

static int message_send(struct egressctl *e, struct egp_message *m, const int *fds, size_t n_fds, struct err *err) {
        uint8_t space[EGP_MESSAGE_MAX];
        struct wr w = wr_to(space, sizeof(space));
        int r;

        if (e->fd < 0)
                return err_set(err, -EPIPE, ERR_INTERNAL, "gabion-egress has ended");
        m->request = ++e->request;
        egp_put(&w, m);
        r = w.bad ? -EMSGSIZE : ipc_send(e->fd, space, w.len, fds, n_fds);
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "gabion-egress: request: %s", strerror(-r)) : 0;
}

static int process_start(struct egressctl *e, struct err *err) {
        struct egp_message m = { .type = EGP_CONFIG };
        AUTO_FD int document = ipc_blob_make(e->config, strlen(e->config), err);
        AUTO_FD int theirs = -1;
        int pair[2], fds[2] = { document, e->keep_fd }, r;

        if (document < 0)
                return document;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "gabion-egress: socket: %s", strerror(errno));
        e->fd = pair[0];
        theirs = pair[1];
        e->ready = false;
        r = process_spawn(e->program, theirs, &e->pid);
        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "%s: %s", e->program, strerror(-r));
        e->pid_fd = sys_pidfd_open(e->pid);
        r = message_send(e, &m, fds, e->keep_fd >= 0 ? 2 : 1, err);
        e->config_request = m.request;
        return r;
}

/*
 * Ends the process: politely by the end of its socket, and by force when it does not hear. Returns its status, or -1 if
 * somebody else has reaped it: then its number may be another's already, and only the descriptor is still its own.
 */
static int process_end(struct egressctl *e) {
        AUTO_FD int pidfd = TAKE_FD(e->pid_fd);
        int status = -1;
        pid_t r;

        if (e->fd >= 0)
                (void) close(TAKE_FD(e->fd));
        if (e->pid <= 0)
                return 0;
        if (pidfd >= 0 && sys_poll_in(pidfd, END_MS) == 0)
                (void) sys_pidfd_send_signal(pidfd, SIGKILL);
        else if (pidfd < 0)
                (void) kill(e->pid, SIGKILL);
        while ((r = waitpid(e->pid, &status, 0)) < 0 && errno == EINTR)
                ;
        e->pid = 0;
        return r < 0 ? -1 : status;
}

static char *config_text(const struct egressctl_config *c, struct err *err) {
        CLEANUP(json_freep) struct json *o = json_new_object();
        char *text = NULL;

        json_set_str(o, "resolv_conf", "/etc/resolv.conf");
        json_set_str(o, "hosts", "/etc/hosts");
        json_set_str(o, "upstream_proxy", c->upstream_proxy);
        json_set_str(o, "bind", c->bind);
        json_set_str(o, "ca_bundle", c->ca_bundle);
        json_set_bool(o, "open_tls", c->open_tls);
        (void) json_text(o, false, &text, err);
        return text;
}

int egressctl_start(const struct egressctl_config *c, egressctl_record_fn fn, void *arg, struct egressctl **ret,
                    struct err *err) {
        struct egressctl *e = calloc(1, sizeof(*e));
        int r;

        if (!e)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        e->fd = e->pid_fd = e->keep_fd = -1;
        e->fn = fn;
        e->arg = arg;
        r = egressctl_find(e->program, err);
        if (r == 0 && c->keep_path) {
                e->keep_fd = open(c->keep_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
                if (e->keep_fd < 0)
                        r = err_set(err, -errno, ERR_INTERNAL, "%.150s: %s", c->keep_path, strerror(errno));
        }
        if (r == 0 && !(e->config = config_text(c, err)))
                r = err->code ? err->code : -ENOMEM;
        if (r == 0)
                r = process_start(e, err);
        if (r < 0)
                (void) egressctl_free(e);
        else
                *ret = e;
        return r;
}

int egressctl_restart(struct egressctl *e, struct err *err) {
        (void) process_end(e);
        return process_start(e, err);
}

struct egressctl *egressctl_free(struct egressctl *e) {
        if (!e)
                return NULL;
        (void) process_end(e);
        if (e->keep_fd >= 0)
                (void) close(e->keep_fd);
        free(e->config);
        free(e->certificate);
        free(e);
        return NULL;
}

static int on_ready(struct egressctl *e, const struct egp_message *m, struct ipc_msg *raw, struct err *err) {
        size_t n;

        if (e->ready || m->request != e->config_request)
                return err_set(err, -EPROTO, ERR_PEER, "gabion-egress: ready when nobody asked");
        e->ready = true;
        if (e->keep_fd < 0)
                e->keep_fd = TAKE_FD(raw->fds[EGP_READY_KEEP]);
        if (!m->with_certificate || e->certificate)
                return 0;
        return ipc_blob_read(raw->fds[EGP_READY_CERTIFICATE], CERTIFICATE_MAX, &e->certificate, &n, err);
}

/*
 * Takes one message. 1: it answers `request` (0 = none is awaited) well; 0: something else was served; -EAGAIN: none is
 * there; another negative: the process is lost, or it answered that it failed (-EREMOTEIO).
 */
static int take(struct egressctl *e, uint32_t request, struct err *err) {
        CLEANUP(ipc_msg_done) struct ipc_msg raw;
        struct egp_message m;
        int r = ipc_recv(e->fd, &raw);

        if (r == -EAGAIN)
                return r;
        if (r == 0)
                return err_set(err, -EPIPE, ERR_INTERNAL, "gabion-egress has ended");
        if (r < 0 || egp_get(raw.bytes, raw.n, &m) < 0 || !egp_n_fds(&m, raw.n_fds))
                return err_set(err, -EPROTO, ERR_PEER, "gabion-egress sent nonsense");
        switch (m.type) {
        case EGP_RECORD:
                e->fn(e->arg, m.record, m.n_record);
                return 0;
        case EGP_READY:
                r = on_ready(e, &m, &raw, err);
                return r < 0 ? r : m.request == request;
        case EGP_OK:
                return m.request == request;
        case EGP_FAILED:
                return err_set(err, -EREMOTEIO, ERR_INVALID, "gabion-egress: %.280s", m.text);
        case EGP_CONFIG:
        case EGP_ADD:
        case EGP_UPDATE:
        case EGP_REMOVE:
        case EGP_PING:
                break;
        }
        return err_set(err, -EPROTO, ERR_PEER, "gabion-egress asks for something");
}

/* After a failure of the channel: nothing more comes from this process. Says how it ended. */
static int lost(struct egressctl *e, int code, struct err *err) {
        int status = process_end(e);

        if (code == -EPIPE && status < 0)
                return err_set(err, -EPIPE, ERR_INTERNAL, "gabion-egress has ended");
        if (code == -EPIPE && WIFSIGNALED(status))
                return err_set(err, -EPIPE, ERR_INTERNAL, "gabion-egress was ended by signal %d", WTERMSIG(status));
        if (code == -EPIPE)
                return err_set(err, -EPIPE, ERR_INTERNAL, "gabion-egress ended with status %d", WEXITSTATUS(status));
        err->code = -EPIPE;
        return -EPIPE;
}

/* One that does not answer in time is as good as dead, and is made so. */
static int await(struct egressctl *e, uint32_t request, unsigned ms, struct err *err) {
        uint64_t until = clock_mono_ns() + ms * 1000000ull;
        int r = 0;

        while (r == 0) {
                struct pollfd p = { .fd = e->fd, .events = POLLIN };
                uint64_t now = clock_mono_ns();

                if (now >= until)
                        r = err_set(err, -ETIMEDOUT, ERR_INTERNAL, "gabion-egress does not answer");
                else if (poll(&p, 1, (int) ((until - now) / 1000000 + 1)) > 0)
                        r = take(e, request, err);
                if (r == -EAGAIN)
                        r = 0;
        }
        if (r == 1)
                return 0;
        return r == -EREMOTEIO ? r : lost(e, r, err);
}

int egressctl_wait_ready(struct egressctl *e, struct err *err) {
        if (e->ready)
                return 0;
        return e->fd < 0 ? err_set(err, -EPIPE, ERR_INTERNAL, "gabion-egress has ended")
                         : await(e, e->config_request, READY_MS, err);
}

const char *egressctl_certificate(const struct egressctl *e) {
        return e->certificate;
}

pid_t egressctl_pid(const struct egressctl *e) {
        return e->pid;
}

static int request(struct egressctl *e, struct egp_message *m, const char *sandbox, const int *fds, size_t n_fds,
                   struct err *err) {
        int r = str_copy(m->sandbox, sizeof(m->sandbox), sandbox);

        if (r == 0)
                r = message_send(e, m, fds, n_fds, err);
        return r < 0 ? r : await(e, m->request, m->type == EGP_REMOVE ? END_MS : ANSWER_MS, err);
}

int egressctl_add(struct egressctl *e, const char *sandbox, const int listeners[EGRESSCTL_LISTENERS],
                  const char *document, struct err *err) {
        struct egp_message m = { .type = EGP_ADD };
        AUTO_FD int blob = ipc_blob_make(document, strlen(document), err);
        const int fds[] = {
                [EGP_ADD_TCP] = listeners[0],
                [EGP_ADD_DNS4] = listeners[1],
                [EGP_ADD_DNS6] = listeners[2],
                [EGP_ADD_DOCUMENT] = blob,
        };

        return blob < 0 ? blob : request(e, &m, sandbox, fds, ARRAY_SIZE(fds), err);
}

int egressctl_update(struct egressctl *e, const char *sandbox, const char *document, bool drop_existing,
                     struct err *err) {
        struct egp_message m = { .type = EGP_UPDATE, .drop_existing = drop_existing };
        AUTO_FD int blob = ipc_blob_make(document, strlen(document), err);

        return blob < 0 ? blob : request(e, &m, sandbox, &blob, 1, err);
}

int egressctl_remove(struct egressctl *e, const char *sandbox, struct err *err) {
        struct egp_message m = { .type = EGP_REMOVE };

        return request(e, &m, sandbox, NULL, 0, err);
}

int egressctl_ping(struct egressctl *e, struct err *err) {
        struct egp_message m = { .type = EGP_PING };

        return request(e, &m, "", NULL, 0, err);
}

int egressctl_fd(const struct egressctl *e) {
        return e->fd;
}

int egressctl_serve(struct egressctl *e, struct err *err) {
        struct pollfd p = { .fd = e->fd, .events = POLLIN };
        int r = 0;

        /* A bounded number at a time: one flooding sandbox must not keep the caller from its other work. */
        for (int i = 0; i < 64 && r >= 0 && poll(&p, 1, 0) > 0; i++)
                r = take(e, 0, err);
        return r < 0 && r != -EAGAIN ? lost(e, r, err) : 0;
}
