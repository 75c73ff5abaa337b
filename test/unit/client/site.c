/* site.c - see site.h. */
#include "site.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/event.h>

#include "base/err.h"

struct asked {
        struct site *site;
        struct evbuffer *body;
};

static void on_body(struct http_conn *c, struct evbuffer *body, void *data) {
        (void) c;
        (void) evbuffer_add_buffer(((struct asked *) data)->body, body);
}

static void on_end(struct http_conn *c, void *data) {
        struct asked *a = data;
        size_t n = evbuffer_get_length(a->body);

        (void) evbuffer_add(a->body, "", 1);
        a->site->fn(c, http_conn_head(c), (const char *) evbuffer_pullup(a->body, -1), n, a->site->n++);
}

static void on_room(struct http_conn *c, void *data) {
        struct asked *a = data;

        if (a->site->room)
                a->site->room(c);
}

static void on_done(struct http_conn *c, int result, void *data) {
        struct asked *a = data;

        (void) c, (void) result;
        evbuffer_free(a->body);
        free(a);
}

static void on_head(struct http_conn *c, const struct http_head *head, void *arg) {
        static const struct http_handler handler = {
                .on_body = on_body, .on_end = on_end, .on_room = on_room, .on_done = on_done
        };
        struct asked *a = calloc(1, sizeof(*a));

        (void) head;
        assert_non_null(a);
        *a = (struct asked){ arg, evbuffer_new() };
        http_accept(c, &handler, a, 0);
}

void site_start(struct site *s, bool on_unix, site_fn fn) {
        const struct http_server_config config = { .on_head = on_head, .arg = s };
        struct client_config client = { .server = s->url, .key = "e2b_0123" };
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        socklen_t n = sizeof(in);
        struct err err = { 0 };
        int fd = socket(on_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        *s = (struct site){ .fn = fn };
        (void) snprintf(un.sun_path, sizeof(un.sun_path), "/tmp/gabion-test-%d.sock", (int) getpid());
        assert_int_equal(on_unix ? bind(fd, (struct sockaddr *) &un, sizeof(un)) : bind(fd, (struct sockaddr *) &in, n),
                         0);
        assert_int_equal(listen(fd, 16), 0);
        if (on_unix) {
                (void) snprintf(s->url, sizeof(s->url), "unix:%s", un.sun_path);
        } else {
                assert_int_equal(getsockname(fd, (struct sockaddr *) &in, &n), 0);
                (void) snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u", (unsigned) ntohs(in.sin_port));
        }
        assert_int_equal(client_new(&s->client, &client, &err), 0);
        assert_int_equal(http_server_new(&s->server, client_base(s->client), &config, &err), 0);
        assert_int_equal(http_server_listen(s->server, fd, NULL, &err), 0);
}

void site_stop(struct site *s) {
        s->server = http_server_free(s->server);
        s->client = client_free(s->client);
        if (strncmp(s->url, "unix:", 5) == 0)
                (void) unlink(s->url + 5);
}

static void on_late(int fd, short what, void *arg) {
        (void) fd, (void) what;
        http_reply_abort(arg);
}

void site_abort(struct site *s, struct http_conn *c) {
        static const struct timeval soon = { .tv_usec = 50 * 1000 };

        assert_int_equal(event_base_once(client_base(s->client), -1, EV_TIMEOUT, on_late, c, &soon), 0);
}
