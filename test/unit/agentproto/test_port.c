/* test_port.c - the real gabion-agent: streams to ports inside. argv[1]: its file. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"
#include "process.h"
#include "shim.h"

/* A server of a kind on a free loopback port; its listening socket. */
static int listen_on(int family, uint16_t *ret_port) {
        struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
        int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), r;
        socklen_t n = sizeof(v6);

        assert_true(fd >= 0);
        r = family == AF_INET ? bind(fd, (struct sockaddr *) &v4, sizeof(v4))
                              : bind(fd, (struct sockaddr *) &v6, sizeof(v6));
        if (r < 0 && family == AF_INET6) {
                print_message("no IPv6 on this machine\n");
                skip();
        }
        assert_int_equal(r, 0);
        assert_int_equal(listen(fd, 8), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *) &v6, &n), 0); /* the port lies at the same place in both */
        *ret_port = ntohs(v6.sin6_port);
        return fd;
}

static void stream_carries_both_ways_and_ends_one_way_first(void **state) {
        static const int families[] = { AF_INET, AF_INET6 };

        for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
                AUTO_FD int listener = -1, server = -1;
                struct conn *c = conn_open(*state);
                char text[64] = "";
                uint16_t port;

                listener = listen_on(families[i], &port);
                conn_u32(c, AP_PORT, 3, port);
                conn_expect(c, AP_DONE);
                assert_int_equal(c->head.id, 3);
                server = accept(listener, NULL, NULL);
                assert_int_equal(send(c->fd, "question", 8, 0), 8);
                assert_int_equal(shutdown(c->fd, SHUT_WR), 0);
                assert_int_equal(recv(server, text, sizeof(text), MSG_WAITALL), 8); /* until the end */
                assert_string_equal(text, "question");
                assert_int_equal(send(server, "answer", 6, 0), 6);
                assert_int_equal(shutdown(server, SHUT_WR), 0);
                memset(text, 0, sizeof(text));
                assert_int_equal(recv(c->fd, text, sizeof(text), MSG_WAITALL), 6);
                assert_string_equal(text, "answer");
                conn_close(c);
        }
}

static void closed_port_is_told(void **state) {
        struct conn *c = conn_open(*state);
        uint16_t port;
        char step[32];

        (void) close(listen_on(AF_INET, &port));
        conn_u32(c, AP_PORT, 3, port);
        assert_int_equal(conn_error(c, step), ECONNREFUSED);
        assert_string_equal(step, "connect");
        assert_true(conn_has_ended(c));
        conn_close(c);
}

static void much_data_passes_and_a_slow_reader_is_waited_for(void **state) {
        enum { BYTES = 20 * 1000 * 1000 };
        AUTO_FD int listener = -1;
        struct conn *c = conn_open(*state);
        static char piece[100000];
        uint16_t port;
        size_t got = 0;
        int status;
        pid_t pid;

        listener = listen_on(AF_INET, &port);
        pid = fork();
        if (pid == 0) { /* gives back what it gets */
                int fd = accept(listener, NULL, NULL);
                ssize_t n;

                while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
                        if (send(fd, piece, (size_t) n, MSG_WAITALL) != n)
                                _exit(1);
                _exit(0);
        }
        conn_u32(c, AP_PORT, 3, port);
        conn_expect(c, AP_DONE);
        for (size_t sent = 0; got < BYTES;) {
                struct pollfd p = { .fd = c->fd, .events = (short) (sent < BYTES ? POLLIN | POLLOUT : POLLIN) };
                ssize_t n;

                assert_int_equal(poll(&p, 1, 5000), 1);
                if (sent < BYTES && (p.revents & POLLOUT)) {
                        n = send(c->fd, piece, sizeof(piece), MSG_DONTWAIT);
                        sent += n > 0 ? (size_t) n : 0;
                        if (sent >= BYTES)
                                assert_int_equal(shutdown(c->fd, SHUT_WR), 0);
                }
                if (p.revents & POLLIN) {
                        n = recv(c->fd, piece, sizeof(piece), MSG_DONTWAIT);
                        if (n == 0)
                                break;
                        got += n > 0 ? (size_t) n : 0;
                }
        }
        assert_true(got >= BYTES);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        conn_close(c);
}

static void streams_are_bounded_and_leave(void **state) {
        AUTO_FD int listener = -1;
        struct conn *c[70];
        unsigned refused = 0;
        uint16_t port;

        listener = listen_on(AF_INET, &port);
        assert_int_equal(listen(listener, 128), 0);
        for (int round = 0; round < 2; round++) {
                refused = 0;
                for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
                        c[i] = conn_open(*state);
                        conn_u32(c[i], AP_PORT, 3, port);
                        assert_true(conn_next(c[i], 5000));
                        refused += c[i]->head.type == AP_ERROR;
                }
                for (size_t i = 0; i < ARRAY_SIZE(c); i++)
                        conn_close(c[i]);
                for (size_t i = 0; i < ARRAY_SIZE(c) - refused; i++)
                        (void) close(accept(listener, NULL, NULL));
                (void) usleep(50000);
        }
        assert_int_equal(refused, 70 - 64);
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = {
                SHIM_TEST(stream_carries_both_ways_and_ends_one_way_first),
                SHIM_TEST(closed_port_is_told),
                SHIM_TEST(much_data_passes_and_a_slow_reader_is_waited_for),
                SHIM_TEST(streams_are_bounded_and_leave),
        };

        if (argc != 2)
                return 2;
        process_use(argv[1]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
