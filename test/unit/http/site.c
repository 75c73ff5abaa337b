/* site.c - see site.h. Runs in the child but for the last part. */
#include "site.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"

static struct event_base *base;
static struct http_server *server;
static struct site_facts *facts;

struct request {
        struct http_conn *c;
        struct event *timer;
        uint64_t left, n;
};

static void must(bool ok, const char *what) {
        if (!ok) {
                perror(what);
                _exit(99);
        }
}

static void on_done(struct http_conn *c, int result, void *data) {
        struct request *r = data;

        (void) c;
        facts->n_done++;
        facts->last_result = result;
        if (r->timer)
                event_free(r->timer);
        free(r);
}

static void echo_body(struct http_conn *c, struct evbuffer *body, void *data) {
        struct err err = { 0 };

        (void) data;
        (void) http_reply_buffer(c, body, &err);
}

static void echo_end(struct http_conn *c, void *data) {
        struct err err = { 0 };

        (void) data;
        (void) http_reply_end(c, &err);
}

static void sum_body(struct http_conn *c, struct evbuffer *body, void *data) {
        struct request *r = data;

        (void) c;
        r->n += evbuffer_get_length(body);
        (void) evbuffer_drain(body, SIZE_MAX);
}

static void sum_end(struct http_conn *c, void *data) {
        struct request *r = data;
        struct err err = { 0 };
        char text[32];
        int n = snprintf(text, sizeof(text), "%" PRIu64, r->n);

        (void) http_reply(c, 200, NULL, text, (size_t) n, &err);
}

static void note_waiting(struct http_conn *c) {
        size_t waiting = evbuffer_get_length(bufferevent_get_output(http_conn_bev(c)));

        if (waiting > facts->most_waiting)
                facts->most_waiting = waiting;
}

static void big_room(struct http_conn *c, void *data) {
        static const char block[16384] = "big";
        struct request *r = data;
        struct err err = { 0 };

        while (r->left > 0 && !http_reply_is_full(c)) {
                size_t n = r->left < sizeof(block) ? (size_t) r->left : sizeof(block);

                if (http_reply_body(c, block, n, &err) < 0)
                        return;
                r->left -= n;
                note_waiting(c);
        }
        if (r->left == 0)
                (void) http_reply_end(c, &err);
}

static void slow_timer(int fd, short what, void *arg) {
        struct request *r = arg;
        struct err err = { 0 };

        (void) fd, (void) what;
        (void) http_reply(r->c, 200, NULL, "slow", 4, &err);
}

static void pause_timer(int fd, short what, void *arg) {
        struct request *r = arg;

        (void) fd, (void) what;
        http_resume(r->c);
}

static void pause_body(struct http_conn *c, struct evbuffer *body, void *data) {
        static const struct timeval soon = { .tv_usec = 2000 }, stall = { .tv_usec = 700 * 1000 };
        struct request *r = data;
        size_t n = evbuffer_get_length(body);

        (void) c;
        n = n < 1000 ? n : 1000;
        r->n += n;
        (void) evbuffer_drain(body, n);
        if (evbuffer_get_length(body) > 0)
                (void) event_add(r->timer, r->left > 0 ? &stall : &soon);
        r->left = 0;
}

static void raw_read(struct bufferevent *bev, void *arg) {
        (void) arg;
        (void) bufferevent_write_buffer(bev, bufferevent_get_input(bev));
}

static void raw_event(struct bufferevent *bev, short what, void *arg) {
        (void) arg;
        if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
                bufferevent_free(bev);
}

static const struct http_handler echo = { .on_body = echo_body, .on_end = echo_end, .on_done = on_done };
static const struct http_handler sum = { .on_body = sum_body, .on_end = sum_end, .on_done = on_done };
static const struct http_handler big = { .on_room = big_room, .on_done = on_done };
static const struct http_handler silent = { .on_done = on_done };
static const struct http_handler pausing = { .on_body = pause_body, .on_end = sum_end, .on_done = on_done };

static struct request *accept_with(struct http_conn *c, const struct http_handler *h, event_callback_fn timer) {
        struct request *r = calloc(1, sizeof(*r));

        must(r != NULL, "calloc");
        r->c = c;
        if (timer)
                r->timer = evtimer_new(base, timer, r);
        http_accept(c, h, r, 0);
        return r;
}

static void start_big(struct http_conn *c, const struct http_head *head) {
        struct request *r = accept_with(c, &big, NULL);
        const char *query = head->query;
        char name[16], value[32];
        struct err err = { 0 };

        must(query && http_query_next(&query, name, sizeof(name), value, sizeof(value)) == 1 &&
                     str_to_u64(value, UINT64_MAX, &r->left) == 0,
             "bytes=");
        if (http_reply_start(c, 200, NULL, HTTP_BODY_CHUNKED, 0, &err) == 0)
                big_room(c, r);
}

static void start_upgrade(struct http_conn *c) {
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        struct bufferevent *bev;
        struct err err = { 0 };

        http_add(&lines, "Connection", "Upgrade");
        http_add(&lines, "Upgrade", "echo");
        must(http_hand_over(c, 101, &lines, &bev, &err) == 0, err.msg);
        buf_done(&lines);
        bufferevent_setcb(bev, raw_read, NULL, raw_event, NULL);
        raw_read(bev, NULL);
}

/* Replies that go wrong in one way or another. */
static void reply_badly(struct http_conn *c, const char *path) {
        struct buf lines = BUF_INIT(HTTP_HEAD_MAX);
        struct err err = { 0 };

        if (str_eq(path, "/bad")) {
                http_add(&lines, "X-A", "b\r\nX-Evil: c");
                must(http_reply(c, 200, &lines, "x", 1, &err) == -EINVAL, "CRLF was written");
                (void) http_reply(c, 500, NULL, "bad", 3, &err);
        } else if (str_eq(path, "/abort")) {
                (void) accept_with(c, &silent, NULL);
                (void) http_reply_start(c, 200, NULL, HTTP_BODY_CHUNKED, 0, &err);
                (void) http_reply_body(c, "part", 4, &err);
                http_reply_abort(c);
                must(http_reply_end(c, &err) == -EPIPE, "end after abort");
        } else {
                (void) http_reply_start(c, 200, NULL, HTTP_BODY_LENGTH, 10, &err);
                (void) http_reply_body(c, "part", 4, &err);
                must(http_reply_end(c, &err) == -EINVAL, "short reply");
        }
        buf_done(&lines);
}

/* Returns to the loop only when the client has said more, which it does when it has its answer. */
static void reply_and_stay(struct http_conn *c) {
        struct pollfd p = { .fd = http_conn_fd(c), .events = POLLIN };
        struct err err = { 0 };

        (void) http_reply(c, 200, NULL, "at once", 7, &err);
        (void) http_flush(c);
        facts->flushed = poll(&p, 1, 5000) == 1;
}

static void on_head(struct http_conn *c, const struct http_head *head, void *arg) {
        static const struct timeval later = { .tv_usec = 250 * 1000 };
        static char large[7 * 1024 * 1024];
        struct err err = { 0 };

        (void) arg;
        facts->n_heads++;
        note_waiting(c);
        facts->n_conns = http_server_count(server);
        if (facts->n_conns > facts->most_conns)
                facts->most_conns = facts->n_conns;
        if (str_eq(head->path, "/echo")) {
                (void) accept_with(c, &echo, NULL);
                (void) http_reply_start(c, 200, NULL, HTTP_BODY_CHUNKED, 0, &err);
        } else if (str_eq(head->path, "/sum") || str_eq(head->path, "/x"))
                (void) accept_with(c, &sum, NULL);
        else if (str_eq(head->path, "/pause"))
                (void) accept_with(c, &pausing, pause_timer);
        else if (str_eq(head->path, "/stall"))
                accept_with(c, &pausing, pause_timer)->left = 1;
        else if (str_eq(head->path, "/large"))
                (void) http_reply(c, 200, NULL, large, sizeof(large), &err);
        else if (str_eq(head->path, "/big"))
                start_big(c, head);
        else if (str_eq(head->path, "/slow"))
                (void) event_add(accept_with(c, &silent, slow_timer)->timer, &later);
        else if (str_eq(head->path, "/hold"))
                (void) accept_with(c, &silent, NULL);
        else if (str_eq(head->path, "/upgrade"))
                start_upgrade(c);
        else if (str_eq(head->path, "/flush"))
                reply_and_stay(c);
        else if (str_eq(head->path, "/unasked"))
                (void) http_reply(c, 204, NULL, "x", 1, &err);
        else if (str_eq(head->path, "/bad") || str_eq(head->path, "/abort") || str_eq(head->path, "/short"))
                reply_badly(c, head->path);
        else if (!str_eq(head->path, "/none"))
                (void) http_reply(c, 200, NULL, "hello", 5, &err);
}

static void on_refused(struct http_conn *c, unsigned status, const struct err *err, void *arg) {
        (void) c, (void) status, (void) err, (void) arg;
        facts->n_refused++;
}

static void on_empty(void *arg) {
        (void) arg;
        facts->n_empty++;
}

static void on_control(int fd, short what, void *arg) {
        char c;

        (void) what, (void) arg;
        if (read(fd, &c, 1) == 1)
                http_server_drain(server);
        else
                (void) event_base_loopbreak(base);
}

static void serve(int tcp_fd, int unix_fd, int control_fd, const struct http_server_config *config) {
        struct http_server_config cfg = *config;
        struct err err = { 0 };
        struct event *control;

        cfg.on_head = on_head;
        cfg.on_refused = on_refused;
        cfg.on_empty = on_empty;
        base = event_base_new();
        must(base && http_server_new(&server, base, &cfg, &err) == 0, "server");
        must(http_server_listen(server, tcp_fd, NULL, &err) == 0, "listen");
        must(http_server_listen(server, unix_fd, NULL, &err) == 0, "listen");
        control = event_new(base, control_fd, EV_READ | EV_PERSIST, on_control, NULL);
        must(control && event_add(control, NULL) == 0, "control");
        (void) event_base_dispatch(base);
        server = http_server_free(server);
        facts->freed = true;
        event_free(control);
        event_base_free(base);
        (void) close(control_fd);
}

void site_start(struct site *s, const struct http_server_config *config) {
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        socklen_t in_len = sizeof(in), un_len = sizeof(un);
        int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
            local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int control[2];

        facts = mmap(NULL, sizeof(*facts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        must(facts != MAP_FAILED && pipe(control) == 0, "pipe");
        must(bind(tcp, (struct sockaddr *) &in, sizeof(in)) == 0 && listen(tcp, 2048) == 0, "bind");
        must(bind(local, (struct sockaddr *) &un, sizeof(sa_family_t)) == 0 && listen(local, 64) == 0, "bind");
        must(getsockname(tcp, (struct sockaddr *) &in, &in_len) == 0, "getsockname");
        must(getsockname(local, (struct sockaddr *) &un, &un_len) == 0, "getsockname");
        *s = (struct site){ .control_fd = control[1], .port = ntohs(in.sin_port), .facts = facts };
        s->unix_len = un_len - offsetof(struct sockaddr_un, sun_path);
        memcpy(s->unix_name, un.sun_path, s->unix_len);
        s->pid = fork();
        must(s->pid >= 0, "fork");
        if (s->pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) close(control[1]);
                serve(tcp, local, control[0], config);
                exit(0); /* through LSan */
        }
        (void) close(control[0]);
        (void) close(tcp);
        (void) close(local);
}

void site_drain(struct site *s) {
        must(write(s->control_fd, "d", 1) == 1, "drain");
}

bool site_stop(struct site *s) {
        int status;

        (void) close(s->control_fd);
        must(waitpid(s->pid, &status, 0) == s->pid, "waitpid");
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 && s->facts->freed;
}
