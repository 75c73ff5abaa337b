/* client.c - the client of site.h: raw sockets, and our own parser for what comes back. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "site.h"

static void must(bool ok, const char *what) {
        if (!ok) {
                perror(what);
                abort();
        }
}

static int connect_to(int family, const void *addr, socklen_t len) {
        static const struct timeval timeout = { .tv_sec = 10 };
        int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

        must(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
                     setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) == 0,
             "socket");
        must(connect(fd, addr, len) == 0, "connect");
        return fd;
}

int site_connect(const struct site *s) {
        struct sockaddr_in in = { .sin_family = AF_INET,
                                  .sin_port = htons(s->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

        return connect_to(AF_INET, &in, sizeof(in));
}

int site_connect_unix(const struct site *s) {
        struct sockaddr_un un = { .sun_family = AF_UNIX };

        memcpy(un.sun_path, s->unix_name, s->unix_len);
        return connect_to(AF_UNIX, &un, (socklen_t) (offsetof(struct sockaddr_un, sun_path) + s->unix_len));
}

void site_send(int fd, const void *p, size_t n) {
        must(send(fd, p, n, MSG_NOSIGNAL) == (ssize_t) n, "send");
}

void site_say(int fd, const char *text) {
        site_send(fd, text, strlen(text));
}

static void take_event(struct http_parser *p, const struct http_event *ev, struct site_reply *r) {
        const struct http_head *h = http_parser_head(p);

        if (ev->type == HTTP_EV_HEAD) {
                r->status = h->status;
                r->keep_alive = h->keep_alive;
                r->has_date = http_header(h, "date", NULL) != NULL;
        }
        if (ev->type == HTTP_EV_BODY) {
                if (r->n_body + ev->n < sizeof(r->body))
                        memcpy(r->body + r->n_body, ev->data, ev->n);
                r->n_body += ev->n;
        }
}

/* Feeds what is there. True: the reply is whole, and the rest kept. */
static bool take(struct http_parser *p, const char *method, const char *bytes, size_t n, struct site_reply *r) {
        struct http_event ev = { 0 };
        struct err err = { 0 };
        bool started = false;

        do {
                /* The parser refuses bytes behind a reply. Here they are the next reply, so it does not see them. */
                bool is_whole = started && !http_parser_is_busy(p);

                if (http_feed(p, bytes, is_whole ? 0 : n, &ev, &err) < 0) {
                        (void) fprintf(stderr, "reply: %s\n", err.msg);
                        r->cut = true;
                        return true;
                }
                take_event(p, &ev, r);
                bytes += ev.used;
                n -= ev.used;
                started = ev.type == HTTP_EV_HEAD || ev.type == HTTP_EV_BODY;
                if (ev.type == HTTP_EV_END && http_parser_head(p)->interim)
                        http_parser_next(p, method);
                else if (ev.type == HTTP_EV_END) {
                        must(n <= sizeof(r->rest), "rest");
                        memcpy(r->rest, bytes, n);
                        r->n_rest = n;
                        return true;
                }
        } while (ev.type != HTTP_EV_MORE);
        return false;
}

void site_read(int fd, const char *method, struct site_reply *reply) {
        CLEANUP(http_parser_freep) struct http_parser *p = NULL;
        struct site_reply r = { 0 };
        struct err err = { 0 };
        struct http_event ev;
        char bytes[65536];
        ssize_t n = (ssize_t) reply->n_rest;

        memcpy(bytes, reply->rest, reply->n_rest);
        must(http_parser_new_response(&p, method, &err) == 0, "parser");
        for (;;) {
                if (n > 0 && take(p, method, bytes, (size_t) n, &r))
                        break;
                n = recv(fd, bytes, sizeof(bytes), 0);
                if (n <= 0) {
                        r.cut = http_eof(p, &ev, &err) < 0;
                        break;
                }
        }
        *reply = r;
}

bool site_ended(int fd) {
        char c;

        return recv(fd, &c, 1, 0) == 0;
}
