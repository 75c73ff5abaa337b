/*
 * egress-load.c - client and server of bench/egress.py: times in microseconds, rates in Gbit/s, as JSON on standard
 * output.
 *
 * usage: egress-load serve PORT
 *        egress-load measure ADDRESS PORT ROUNDS SECONDS [CONNECT-TARGET]
 *
 * The server does what the first byte of a connection says: 'e' sends every byte back, 'd' sends without end, any other
 * takes all and answers one byte at the end. With a CONNECT-TARGET the client speaks to an HTTP proxy first.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 256 << 10, ROUNDS_MAX = 100000 };

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
        static __thread char bytes[CHUNK];
        int fd = (int) (intptr_t) arg, one = 1;
        char what = 0;
        ssize_t n;

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (read(fd, &what, 1) != 1)
                what = 0;
        if (what == 'e') {
                if (write(fd, "!", 1) == 1)
                        while ((n = read(fd, bytes, sizeof(bytes))) > 0 && write(fd, bytes, (size_t) n) == n)
                                ;
        } else if (what == 'd') {
                while (write(fd, bytes, sizeof(bytes)) > 0)
                        ;
        } else if (what) {
                while (read(fd, bytes, sizeof(bytes)) > 0)
                        ;
                (void) !write(fd, "!", 1);
        }
        close(fd);
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
        for (;;) {
                pthread_t t;
                int client = accept(fd, NULL, NULL);

                if (client >= 0 && pthread_create(&t, &attr, serve_one, (void *) (intptr_t) client) != 0)
                        close(client);
        }
}

static int open_one(const char *address, unsigned port, char what) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t) port) };
        int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
        char head[512];
        size_t n = 0;

        inet_pton(AF_INET, address, &a.sin_addr);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (connect(fd, (struct sockaddr *) &a, sizeof(a)) < 0)
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

static double stream(const char *address, unsigned port, char what, double seconds) {
        static char bytes[CHUNK];
        int fd = open_one(address, port, what);
        double begin = now_us(), end = begin + seconds * 1e6, total = 0;

        while (now_us() < end) {
                ssize_t n = what == 'd' ? read(fd, bytes, sizeof(bytes)) : write(fd, bytes, sizeof(bytes));

                if (n <= 0)
                        die("stream");
                total += (double) n;
        }
        if (what == 'u') {
                shutdown(fd, SHUT_WR);
                if (read(fd, bytes, 1) != 1)
                        die("upload: no end");
        }
        total = total * 8 / (now_us() - begin) / 1e3;
        close(fd);
        return total;
}

static int measure(const char *address, unsigned port, unsigned rounds, double seconds) {
        static double t[ROUNDS_MAX];
        char byte;
        int fd;

        for (unsigned i = 0; i < rounds; i++) {
                double begin = now_us();

                fd = open_one(address, port, 'e');
                if (read(fd, &byte, 1) != 1)
                        die("echo");
                t[i] = now_us() - begin;
                close(fd);
        }
        printf("{");
        print_times("connect_us", t, rounds);
        fd = open_one(address, port, 'e');
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
        printf("\"download_gbit\": %.2f, ", stream(address, port, 'd', seconds));
        printf("\"upload_gbit\": %.2f}\n", stream(address, port, 'u', seconds));
        return 0;
}

int main(int argc, char **argv) {
        if (argc == 3 && strcmp(argv[1], "serve") == 0)
                return serve((unsigned) atoi(argv[2]));
        if (argc < 6 || strcmp(argv[1], "measure") != 0 || atoi(argv[4]) < 1 || atoi(argv[4]) > ROUNDS_MAX) {
                fprintf(stderr, "usage: egress-load serve PORT | measure ADDRESS PORT ROUNDS SECONDS [TARGET]\n");
                return 2;
        }
        target = argc > 6 ? argv[6] : NULL;
        return measure(argv[2], (unsigned) atoi(argv[3]), (unsigned) atoi(argv[4]), atof(argv[5]));
}
