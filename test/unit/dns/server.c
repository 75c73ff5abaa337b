/* server.c - see server.h. */
#include "server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "packet.h"

enum { FLAGS = 0x8180, TC = 0x0200, NXDOMAIN = 3, SERVFAIL = 2 };

struct server {
        struct event_base *base;
        int udp_fd, tcp_fd;
        struct event *udp, *tcp;
        uint16_t port, last_port, last_id;
        unsigned n_udp, n_tcp, dropped;
};

static const uint8_t v4[] = { 192, 0, 2, 1 }, v4_tcp[] = { 192, 0, 2, 2 }, v4_lie[] = { 192, 0, 2, 99 };
static const uint8_t v6[] = { 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 };

struct question {
        uint16_t id, type;
        char name[256];
};

static struct question read_question(const uint8_t *b) {
        struct question q = { .id = (uint16_t) (b[0] << 8 | b[1]) };
        size_t at = 12, n = 0;

        while (b[at] != 0) {
                memcpy(q.name + n, b + at + 1, b[at]);
                n += b[at];
                q.name[n++] = '.';
                at += b[at] + 1u;
        }
        q.name[n - 1] = '\0';
        q.type = (uint16_t) (b[at + 1] << 8 | b[at + 2]);
        return q;
}

static void start(struct packet *p, const struct question *q, uint16_t id, uint16_t flags, uint16_t n) {
        packet_start(p, id, flags, (const uint16_t[]){ 1, n, 0, 0 });
        packet_question(p, q->name, q->type, 1);
}

static void address(struct packet *p, const struct question *q, const char *owner, uint32_t ttl) {
        packet_record(p, owner, q->type, ttl, q->type == 1 ? v4 : v6, q->type == 1 ? 4 : 16);
}

static bool is(const struct question *q, const char *label) {
        return strncmp(q->name, label, strlen(label)) == 0 && q->name[strlen(label)] == '.';
}

static void plain(const struct question *q, struct packet *p) {
        if (is(q, "nx") || is(q, "fail")) {
                start(p, q, q->id, is(q, "nx") ? FLAGS | NXDOMAIN : FLAGS | SERVFAIL, 0);
        } else if (is(q, "none") || (is(q, "four") && q->type != 1)) {
                start(p, q, q->id, FLAGS, 0);
        } else if (is(q, "alias")) {
                start(p, q, q->id, FLAGS, 3);
                packet_alias(p, "b.example", 30, "c.example");
                packet_alias(p, q->name, 40, "b.example");
                address(p, q, "C.example", 50);
        } else if (is(q, "other")) {
                start(p, q, q->id, FLAGS, 2);
                address(p, q, "victim.example", 50);
                packet_alias(p, "victim.example", 40, q->name);
        } else {
                start(p, q, q->id, FLAGS, 1);
                address(p, q, q->name, is(q, "short") ? 0 : 60);
        }
}

static void reply_udp(struct server *s, const struct question *q, const struct sockaddr_in *to) {
        struct packet p;

        if (is(q, "silent") || (is(q, "v6silent") && q->type != 1) || (is(q, "once") && s->dropped++ == 0))
                return;
        if (is(q, "cut") || is(q, "cutoff") || is(q, "long")) {
                start(&p, q, q->id, FLAGS | TC, 0);
        } else if (is(q, "lies")) {
                struct question other = *q;

                strncpy(other.name, "lies.example.net", sizeof(other.name));
                start(&p, &other, q->id, FLAGS, 1);
                packet_record(&p, other.name, q->type, 60, v4_lie, 4);
                (void) sendto(s->udp_fd, p.b, p.n, 0, (const struct sockaddr *) to, sizeof(*to));
                start(&p, q, q->id ^ 1, FLAGS, 1);
                packet_record(&p, q->name, q->type, 60, v4_lie, 4);
                (void) sendto(s->udp_fd, p.b, p.n, 0, (const struct sockaddr *) to, sizeof(*to));
                plain(q, &p);
        } else {
                plain(q, &p);
        }
        (void) sendto(s->udp_fd, p.b, p.n, 0, (const struct sockaddr *) to, sizeof(*to));
}

static void on_udp(int fd, short what, void *arg) {
        struct server *s = arg;
        struct sockaddr_in from;
        socklen_t n_from = sizeof(from);
        uint8_t b[1024];
        ssize_t n = recvfrom(fd, b, sizeof(b), 0, (struct sockaddr *) &from, &n_from);
        struct question q;

        (void) what;
        if (n < 17)
                return;
        s->n_udp++;
        q = read_question(b);
        s->last_port = ntohs(from.sin_port);
        s->last_id = q.id;
        reply_udp(s, &q, &from);
}

/* The question is small and local, so one read has it all; the answer goes out byte by byte. */
static void on_tcp_question(int c, short what, void *arg) {
        struct packet p;
        struct question q;
        uint8_t b[1024], head[2];

        (void) what;
        (void) arg;
        if (recv(c, b, sizeof(b), 0) >= 19) {
                q = read_question(b + 2);
                if (is(&q, "cut")) {
                        start(&p, &q, q.id, FLAGS, 1);
                        packet_record(&p, q.name, 1, 60, v4_tcp, 4);
                        head[0] = (uint8_t) (p.n >> 8);
                        head[1] = (uint8_t) p.n;
                        (void) send(c, head, 1, MSG_NOSIGNAL);
                        (void) send(c, head + 1, 1, MSG_NOSIGNAL);
                        for (size_t i = 0; i < p.n; i++)
                                (void) send(c, p.b + i, 1, MSG_NOSIGNAL);
                } else if (is(&q, "long")) {
                        (void) send(c, "\xff\xff", 2, MSG_NOSIGNAL);
                }
        }
        (void) close(c);
}

static void on_tcp(int fd, short what, void *arg) {
        struct server *s = arg;

        (void) what;
        s->n_tcp++;
        (void) event_base_once(s->base, accept4(fd, NULL, NULL, SOCK_CLOEXEC), EV_READ, on_tcp_question, s, NULL);
}

struct server *server_new(struct event_base *base) {
        struct server *s = calloc(1, sizeof(*s));
        struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t n = sizeof(sa);

        if (!s)
                abort();
        s->base = base;
        s->udp_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        s->tcp_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        /* The same port for both; a free one for TCP may be taken for UDP, so look again. */
        if (bind(s->tcp_fd, (struct sockaddr *) &sa, sizeof(sa)) < 0 || listen(s->tcp_fd, 8) < 0 ||
            getsockname(s->tcp_fd, (struct sockaddr *) &sa, &n) < 0)
                abort();
        if (bind(s->udp_fd, (struct sockaddr *) &sa, sizeof(sa)) < 0) {
                (void) close(s->udp_fd);
                (void) close(s->tcp_fd);
                free(s);
                return server_new(base);
        }
        s->port = ntohs(sa.sin_port);
        s->udp = event_new(base, s->udp_fd, EV_READ | EV_PERSIST, on_udp, s);
        s->tcp = event_new(base, s->tcp_fd, EV_READ | EV_PERSIST, on_tcp, s);
        (void) event_add(s->udp, NULL);
        (void) event_add(s->tcp, NULL);
        return s;
}

void server_free(struct server *s) {
        event_free(s->udp);
        event_free(s->tcp);
        (void) close(s->udp_fd);
        (void) close(s->tcp_fd);
        free(s);
}

struct dns_server server_at(const struct server *s) {
        return (struct dns_server){ .addr = addr_v4(INADDR_LOOPBACK), .port = s->port };
}

unsigned server_n_udp(const struct server *s) {
        return s->n_udp;
}

unsigned server_n_tcp(const struct server *s) {
        return s->n_tcp;
}

uint16_t server_last_port(const struct server *s) {
        return s->last_port;
}

uint16_t server_last_id(const struct server *s) {
        return s->last_id;
}
