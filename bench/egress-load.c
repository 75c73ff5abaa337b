/*
 * egress-load.c - client and server of bench/egress.py: times in microseconds, rates in Gbit/s, as JSON on standard
 * output.
 *
 * usage: egress-load serve PORT
 *        egress-load measure HOST PORT ROUNDS SECONDS [CONNECT-TARGET]
 *
 * The server does what the first byte of a connection says: 'e' sends every byte back, 'd' sends without end, any other
 * takes all and answers one byte at the end. With a CONNECT-TARGET the client speaks to an HTTP proxy first.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 256 << 10, STACK = 64 << 10, ROUNDS_MAX = 100000 };

static const char *target; /* of CONNECT; NULL: none */

static double now_us(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static _Noreturn void die(const char *what) {
        fprintf(stderr, "egress-load: %s: %s\n", what, strerror(errno));
        exit(1);
}

static void *serve_one(void *arg) {
        char *bytes = malloc(CHUNK);
        int fd = (int) (intptr_t) arg, one = 1;
        char what = 0;
        ssize_t n;

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (!bytes || read(fd, &what, 1) != 1)
                what = 0;
        if (what == 'e') {
                if (write(fd, "!", 1) == 1)
                        while ((n = read(fd, bytes, CHUNK)) > 0 && write(fd, bytes, (size_t) n) == n)
                                ;
        } else if (what == 'd') {
                while (write(fd, bytes, CHUNK) > 0)
                        ;
        } else if (what) {
                while (read(fd, bytes, CHUNK) > 0)
                        ;
                (void) !write(fd, "!", 1);
        }
        close(fd);
        free(bytes);
        return NULL;
}

static int serve(unsigned port) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t) port) };
        int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
        pthread_attr_t attr;

        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(fd, (struct sockaddr *) &a, sizeof(a)) < 0 || listen(fd, 1024) < 0)
                die("listen");
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attr, STACK);
        for (;;) {
                pthread_t t;
                int client = accept(fd, NULL, NULL);

                while (client >= 0 && pthread_create(&t, &attr, serve_one, (void *) (intptr_t) client) != 0)
                        usleep(1000); /* too many at a time: some will end */
        }
}

static int open_one(struct sockaddr_in *a, char what) {
        int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
        char head[512];
        size_t n = 0;

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (connect(fd, (struct sockaddr *) a, sizeof(*a)) < 0)
                die("connect");
        if (target) {
                int k = snprintf(head, sizeof(head), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target);

                if (write(fd, head, (size_t) k) != k)
                        die("CONNECT");
                while (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0)
                        if (n >= sizeof(head) || read(fd, head + n++, 1) != 1)
                                die("CONNECT: no answer");
                if (memcmp(head, "HTTP/1.", 7) != 0 || memcmp(head + 8, " 200", 4) != 0)
                        die("CONNECT: refused");
        }
        if (write(fd, &what, 1) != 1)
                die("write");
        return fd;
}

static int by_value(const void *a, const void *b) {
        double d = *(const double *) a - *(const double *) b;

        return d < 0 ? -1 : d > 0;
}

static void print_times(const char *name, double *t, unsigned n) {
        qsort(t, n, sizeof(*t), by_value);
        printf("\"%s\": {\"p50\": %.1f, \"p95\": %.1f, \"p99\": %.1f}, ", name, t[n / 2], t[n * 95 / 100],
               t[n * 99 / 100]);
}

static double stream(struct sockaddr_in *a, char what, double seconds) {
        static char bytes[CHUNK];
        int fd = open_one(a, what);
        double begin = now_us(), end = begin + seconds * 1e6, total = 0;

        while (now_us() < end) {
                ssize_t n = what == 'd' ? read(fd, bytes, sizeof(bytes)) : write(fd, bytes, sizeof(bytes));

                if (n <= 0)
                        die("stream");
                total += (double) n;
        }
        if (what == 'u') {
                shutdown(fd, SHUT_WR);
                (void) !read(fd, bytes, 1); /* the server has all; a proxy that cannot pass on a half-close just ends */
        }
        total = total * 8 / (now_us() - begin) / 1e3;
        close(fd);
        return total;
}

static int measure(struct sockaddr_in *a, unsigned rounds, double seconds) {
        static double t[ROUNDS_MAX];
        char byte;
        int fd;

        for (unsigned i = 0; i < rounds; i++) {
                double begin = now_us();

                fd = open_one(a, 'e');
                if (read(fd, &byte, 1) != 1)
                        die("echo");
                t[i] = now_us() - begin;
                close(fd);
        }
        printf("{");
        print_times("connect_us", t, rounds);
        fd = open_one(a, 'e');
        if (read(fd, &byte, 1) != 1)
                die("echo");
        for (unsigned i = 0; i < rounds; i++) {
                double begin = now_us();

                if (write(fd, "x", 1) != 1 || read(fd, &byte, 1) != 1)
                        die("request");
                t[i] = now_us() - begin;
        }
        close(fd);
        print_times("request_us", t, rounds);
        printf("\"download_gbit\": %.2f, ", stream(a, 'd', seconds));
        printf("\"upload_gbit\": %.2f}\n", stream(a, 'u', seconds));
        return 0;
}

/* Names are looked up once: what is measured is the connection. */
static struct sockaddr_in find(const char *host, const char *port) {
        const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
        struct addrinfo *list = NULL;
        struct sockaddr_in a;

        if (getaddrinfo(host, port, &hints, &list) != 0)
                die(host);
        memcpy(&a, list->ai_addr, sizeof(a));
        freeaddrinfo(list);
        return a;
}

int main(int argc, char **argv) {
        struct sockaddr_in a;

        signal(SIGPIPE, SIG_IGN); /* the server's clients come and go */
        if (argc == 3 && strcmp(argv[1], "serve") == 0)
                return serve((unsigned) atoi(argv[2]));
        if (argc < 6 || strcmp(argv[1], "measure") != 0 || atoi(argv[4]) < 1 || atoi(argv[4]) > ROUNDS_MAX) {
                fprintf(stderr, "usage: egress-load serve PORT | measure HOST PORT ROUNDS SECONDS [TARGET]\n");
                return 2;
        }
        target = argc > 6 ? argv[6] : NULL;
        a = find(argv[2], argv[3]);
        return measure(&a, (unsigned) atoi(argv[4]), atof(argv[5]));
}
