/*
 * audit_send.c - see audit_send.h.
 *
 * HTTP is curl's: TLS, proxies and names are done by a program that the distribution keeps up to date, in a process of
 * its own. It gets its configuration (and with it tokens and signatures) as a file on standard input, never as
 * arguments.
 */
#include "cli/audit_send.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"

enum { REPLY_MAX = 1 << 20, CONNECT_S = 10, SECRET_MAX = 256, BODY_FD = 3 };

const char *sender_why(const struct sender *s) {
        return s->why;
}

bool sender_is_single(enum export_form form) {
        return form == EXPORT_WEBHOOK;
}

bool sender_is_framed(const struct sender *s, enum export_form form) {
        return (s->kind == SEND_TCP || s->kind == SEND_UNIX) && (form == EXPORT_SYSLOG || form == EXPORT_CEF);
}

/* On a stream with its length in front; for datagrams a NUL behind each, where they are cut again. */
void sender_frame(const struct sender *s, const struct buf *message, struct buf *to) {
        if (s->kind == SEND_TCP) {
                export_frame(buf_str(message), message->len, to);
        } else {
                buf_add(to, buf_str(message), message->len);
                buf_add(to, "", 1);
        }
}

static int not_now(struct sender *s, const char *why) {
        (void) snprintf(s->why, sizeof(s->why), "%s", why);
        return -EAGAIN;
}

/* --- sockets --- */

static int tcp_connect(struct sender *s, struct err *err) {
        char host[64];
        const char *colon = strrchr(s->to, ':');
        struct sockaddr_in v4 = { .sin_family = AF_INET };
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
        const struct timeval limit = { .tv_sec = CONNECT_S };
        bool is_v4, is_v6;
        AUTO_FD int fd = -1;
        uint64_t port;

        if (!colon || colon <= s->to + 6 || str_to_u64(colon + 1, 65535, &port) < 0 || port == 0)
                return err_set(err, -EINVAL, ERR_INVALID, "--to '%.80s': tcp://ADDRESS:PORT is expected", s->to);
        (void) snprintf(host, sizeof(host), "%.*s", (int) (colon - s->to - 6), s->to + 6);
        is_v4 = inet_pton(AF_INET, host, &v4.sin_addr) == 1;
        is_v6 = !is_v4 && inet_pton(AF_INET6, host, &v6.sin6_addr) == 1;
        if (!is_v4 && !is_v6)
                return err_set(err, -EINVAL, ERR_INVALID, "--to '%.80s': ADDRESS must be a number, not a name", s->to);
        v4.sin_port = v6.sin6_port = htons((uint16_t) port);
        fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
            connect(fd, is_v4 ? (struct sockaddr *) &v4 : (struct sockaddr *) &v6, is_v4 ? sizeof(v4) : sizeof(v6)) < 0)
                return not_now(s, strerror(errno));
        s->fd = TAKE_FD(fd);
        return 0;
}

static int unix_connect(struct sender *s, struct err *err) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (str_copy(a.sun_path, sizeof(a.sun_path), s->to + 5) < 0 || fd < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "--to '%.80s': the path is too long", s->to);
        if (connect(fd, (struct sockaddr *) &a, sizeof(a)) < 0)
                return not_now(s, strerror(errno));
        s->fd = TAKE_FD(fd);
        return 0;
}

static int stream_send(struct sender *s, const struct buf *batch) {
        size_t at = 0;

        while (at < batch->len) {
                ssize_t k = send(s->fd, batch->p + at, batch->len - at, MSG_NOSIGNAL);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0)
                        return not_now(s, strerror(errno));
                at += (size_t) k;
        }
        return 0;
}

static int datagrams_send(struct sender *s, const struct buf *batch) {
        for (size_t at = 0; at < batch->len;) {
                size_t n = strlen(batch->p + at);

                if (send(s->fd, batch->p + at, n, MSG_NOSIGNAL) < 0)
                        return not_now(s, strerror(errno));
                at += n + 1;
        }
        return 0;
}

/* A receiver that went away tells so only when it is written to, or by closing: look before believing. */
static bool is_closed(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN | POLLRDHUP };

        return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static int socket_send(struct sender *s, const struct buf *batch, struct err *err) {
        int r = 0;

        if (s->fd >= 0 && is_closed(s->fd))
                (void) close(TAKE_FD(s->fd));
        if (s->fd < 0)
                r = s->kind == SEND_TCP ? tcp_connect(s, err) : unix_connect(s, err);
        if (r == 0)
                r = s->kind == SEND_TCP ? stream_send(s, batch) : datagrams_send(s, batch);
        if (r == 0 && s->kind == SEND_TCP && is_closed(s->fd))
                r = not_now(s, "the connection was closed");
        if (r < 0 && s->fd >= 0)
                (void) close(TAKE_FD(s->fd));
        return r;
}

/* --- HTTP --- */

static void config_line(struct buf *to, const char *key, const char *value) {
        buf_addf(to, "%s = \"", key);
        for (; *value; value++) {
                if (*value == '"' || *value == '\\')
                        buf_add(to, "\\", 1);
                buf_add(to, value, 1);
        }
        buf_addf(to, "\"\n");
}

static int memory_file(const char *p, size_t n) {
        AUTO_FD int fd = memfd_create("export", MFD_CLOEXEC);

        if (fd < 0 || fd_write_all(fd, p, n) < 0 || lseek(fd, 0, SEEK_SET) < 0)
                return -EIO;
        return TAKE_FD(fd);
}

static int config_make(struct sender *s, const struct buf *batch, const char *id, struct err *err) {
        struct buf c = BUF_INIT(16384), sig = BUF_INIT(256);
        uint64_t now = (uint64_t) time(NULL);
        char text[160];
        int r = 0, fd;

        config_line(&c, "url", s->to);
        config_line(&c, "header", "Content-Type: application/json");
        config_line(&c, "header", "Expect:");
        buf_addf(&c, "%s", s->headers);
        if (s->form == EXPORT_WEBHOOK) {
                r = export_webhook_sign(&s->key, id, now, batch->p, batch->len, &sig, err);
                (void) snprintf(text, sizeof(text), "webhook-id: %.30s", id);
                config_line(&c, "header", text);
                (void) snprintf(text, sizeof(text), "webhook-timestamp: %llu", (unsigned long long) now);
                config_line(&c, "header", text);
                (void) snprintf(text, sizeof(text), "webhook-signature: %.120s", buf_str(&sig));
                config_line(&c, "header", text);
        }
        fd = r < 0 ? r : memory_file(buf_str(&c), c.len);
        if (r == 0 && (fd < 0 || c.bad))
                r = err_set(err, -EIO, ERR_INTERNAL, "export: the request cannot be made");
        buf_done(&c);
        buf_done(&sig);
        return r < 0 ? r : fd;
}

/* Runs curl with files as its standard descriptors. 0 and its exit status. */
static int curl_run(int config_fd, int body_fd, int reply_fd, int *ret_status, struct err *err) {
        static char *const argv[] = { "curl",
                                      "--silent",
                                      "--show-error",
                                      "--proto",
                                      "=http,https",
                                      "--max-time",
                                      "30",
                                      "--write-out",
                                      "\n%{http_code} %header{retry-after}",
                                      "--request",
                                      "POST",
                                      "--data-binary",
                                      "@/dev/fd/3",
                                      "--max-filesize",
                                      "4194304",
                                      "--config",
                                      "-",
                                      NULL };
        static char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", NULL };
        posix_spawn_file_actions_t fa;
        pid_t pid;
        int e;

        (void) posix_spawn_file_actions_init(&fa);
        (void) posix_spawn_file_actions_adddup2(&fa, config_fd, STDIN_FILENO);
        (void) posix_spawn_file_actions_adddup2(&fa, reply_fd, STDOUT_FILENO);
        (void) posix_spawn_file_actions_adddup2(&fa, body_fd, BODY_FD);
        (void) posix_spawn_file_actions_addopen(&fa, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        e = posix_spawnp(&pid, "curl", &fa, NULL, argv, env);
        (void) posix_spawn_file_actions_destroy(&fa);
        if (e != 0)
                return err_set(err, -e, ERR_INTERNAL, "export: curl cannot be started: %s; install it", strerror(e));
        while (waitpid(pid, ret_status, 0) < 0)
                if (errno != EINTR)
                        return err_set(err, -errno, ERR_INTERNAL, "export: curl: %s", strerror(errno));
        return 0;
}

/* The last line that curl wrote is the status, what is before is the reply. */
static int reply_judge(struct sender *s, char *text, size_t n, unsigned *ret_wait_ms, struct err *err) {
        char *last = memrchr(text, '\n', n), number[8];
        CLEANUP(json_freep) struct json *doc = NULL;
        struct err why = { 0 };
        uint64_t code, wait;

        if (!last || strlen(last + 1) < 3)
                return not_now(s, "no answer");
        (void) snprintf(number, sizeof(number), "%.3s", last + 1);
        if (str_to_u64(number, 999, &code) < 0 || code == 0)
                return not_now(s, "no answer");
        if (str_to_u64(last + 1 + 3 + (last[4] == ' '), 86400, &wait) == 0)
                *ret_wait_ms = (unsigned) wait * 1000;
        if (code == 429 || code == 502 || code == 503 || code == 504) {
                (void) snprintf(s->why, sizeof(s->why), "HTTP %s", number);
                return -EAGAIN;
        }
        if (code < 200 || code > 299)
                return err_set(err, -EREMOTEIO, ERR_PEER,
                               "%.100s refuses the records (HTTP %s); the cursor stays in front of them", s->to,
                               number);
        /* OTLP may take a request and say that it threw records away: those must not be sent again. */
        if (s->form == EXPORT_OTLP && json_parse("reply", text, (size_t) (last - text), &doc, &why) == 0) {
                const struct json *part = json_get(doc, "partialSuccess");
                const char *rejected = json_get_str(part, "rejectedLogRecords");
                uint64_t k = (uint64_t) json_get_int(part, "rejectedLogRecords", 0);

                if (k > 0 || (rejected && str_to_u64(rejected, UINT64_MAX, &k) == 0))
                        s->rejected += k;
        }
        return 0;
}

static int http_send(struct sender *s, const struct buf *batch, const char *id, unsigned *ret_wait_ms,
                     struct err *err) {
        AUTO_FD int config_fd = config_make(s, batch, id, err), body_fd = memory_file(batch->p, batch->len),
                    reply_fd = memfd_create("reply", MFD_CLOEXEC);
        AUTO_FREE char *text = malloc(REPLY_MAX);
        int status = 0, n, r;

        if (config_fd < 0)
                return config_fd;
        if (body_fd < 0 || reply_fd < 0 || !text)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "export: out of memory");
        r = curl_run(config_fd, body_fd, reply_fd, &status, err);
        if (r < 0)
                return r;
        if (lseek(reply_fd, 0, SEEK_SET) < 0)
                return not_now(s, "no answer");
        n = fd_read_upto(reply_fd, text, REPLY_MAX);
        if (n < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
                return not_now(s, "no connection");
        return reply_judge(s, text, (size_t) n, ret_wait_ms, err);
}

/* --- all --- */

int sender_send(struct sender *s, const struct buf *batch, const char *id, unsigned *ret_wait_ms, struct err *err) {
        if (s->kind == SEND_FILE)
                return fd_write_all(STDOUT_FILENO, batch->p, batch->len) < 0
                               ? err_set(err, -EIO, ERR_INTERNAL, "export: standard output cannot be written")
                               : 0;
        return s->kind == SEND_HTTP ? http_send(s, batch, id, ret_wait_ms, err) : socket_send(s, batch, err);
}

static int secret_read(struct sender *s, const char *path, struct err *err) {
        char text[SECRET_MAX];
        int n = path ? fd_read_at(AT_FDCWD, path, text, sizeof(text)) : -ENOENT;

        if (n < 0)
                return err_set(err, n, ERR_INVALID, "--secret: a file with the webhook's key is needed: %s",
                               path ? strerror(-n) : "none was given");
        text[strcspn(text, "\r\n")] = '\0';
        return export_key_parse(text, &s->key, err);
}

static int headers_read(struct sender *s, const char *path, struct err *err) {
        struct buf b = BUF_INIT(sizeof(s->headers) - 1);
        char text[2048], *line = text;
        int n = fd_read_at(AT_FDCWD, path, text, sizeof(text));

        if (n < 0)
                return err_set(err, n, ERR_INVALID, "--headers %.150s: %s", path, strerror(-n));
        while (line && *line) {
                char *end = strchr(line, '\n');

                if (end)
                        *end = '\0';
                if (*line)
                        config_line(&b, "header", line);
                line = end ? end + 1 : NULL;
        }
        n = b.bad ? -E2BIG : str_copy(s->headers, sizeof(s->headers), buf_str(&b));
        buf_done(&b);
        return n < 0 ? err_set(err, n, ERR_LIMIT, "--headers %.150s: too much", path) : 0;
}

int sender_open(struct sender *s, enum export_form form, const char *to, const char *secret_path,
                const char *headers_path, struct err *err) {
        int r = 0;

        *s = (struct sender){ .form = form, .to = to, .fd = -1 };
        if (str_has_prefix(to, "http://") || str_has_prefix(to, "https://"))
                s->kind = SEND_HTTP;
        else if (str_has_prefix(to, "tcp://"))
                s->kind = SEND_TCP;
        else if (str_has_prefix(to, "unix:"))
                s->kind = SEND_UNIX;
        else if (!str_eq(to, "-"))
                return err_set(err, -EINVAL, ERR_INVALID,
                               "--to '%.80s': -, http(s)://..., tcp://ADDRESS:PORT or unix:PATH is expected", to);
        if (s->kind == SEND_UNIX && form != EXPORT_SYSLOG && form != EXPORT_CEF)
                return err_set(err, -EINVAL, ERR_INVALID, "--to unix: takes syslog and cef only");
        if (form == EXPORT_WEBHOOK && s->kind == SEND_HTTP)
                r = secret_read(s, secret_path, err);
        if (r == 0 && headers_path)
                r = headers_read(s, headers_path, err);
        return r;
}

void sender_close(struct sender *s) {
        if (s->fd >= 0)
                (void) close(TAKE_FD(s->fd));
}
