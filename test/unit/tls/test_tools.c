/* test_tools.c - programs that others wrote, against a minted leaf over loopback: curl and openssl. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "tls/tls.h"

#define NAME "www.example.com"

extern char **environ;

static struct event_base *base;
static struct tls_ca *ca;
static struct tls_mint *mint;
static char ca_path[64];
static int listen_fd = -1;
static struct event *listener;
static unsigned port;
static char output[65536];
static size_t n_output;

static void on_request(struct bufferevent *bev, void *arg) {
        static const char body[] = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\ngabion";
        char *line = evbuffer_readln(bufferevent_get_input(bev), NULL, EVBUFFER_EOL_CRLF_STRICT);

        (void) arg;
        if (!line)
                return;
        free(line);
        assert_int_equal(bufferevent_write(bev, body, sizeof(body) - 1), 0);
        tls_close(bev);
}

static void on_event(struct bufferevent *bev, short what, void *arg) {
        (void) arg;
        if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
                bufferevent_free(bev);
}

static void on_connection(int fd, short what, void *arg) {
        int c = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct bufferevent *bev = NULL;
        struct err err = { 0 };

        (void) what;
        (void) arg;
        assert_int_equal(tls_accept(mint, bufferevent_socket_new(base, c, BEV_OPT_CLOSE_ON_FREE), NAME, &bev, &err), 0);
        bufferevent_setcb(bev, on_request, NULL, on_event, NULL);
        (void) bufferevent_enable(bev, EV_READ | EV_WRITE);
}

static int set_up(void **state) {
        struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t n = sizeof(sa);
        struct err err = { 0 };
        int fd;

        (void) state;
        (void) signal(SIGPIPE, SIG_IGN);
        base = event_base_new();
        if (tls_ca_new("Gabion test", 30, &ca, &err) < 0 || tls_mint_new(ca, 4, &mint, &err) < 0)
                return -1;
        (void) snprintf(ca_path, sizeof(ca_path), "/tmp/gabion-tls.XXXXXX");
        fd = mkstemp(ca_path);
        if (fd < 0 || fd_write_all(fd, tls_ca_pem(ca), strlen(tls_ca_pem(ca))) < 0 || close(fd) < 0)
                return -1;
        listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(listen_fd, (struct sockaddr *) &sa, sizeof(sa)) < 0 || listen(listen_fd, 8) < 0 ||
            getsockname(listen_fd, (struct sockaddr *) &sa, &n) < 0)
                return -1;
        port = ntohs(sa.sin_port);
        listener = event_new(base, listen_fd, EV_READ | EV_PERSIST, on_connection, NULL);
        return event_add(listener, NULL);
}

/* What closes late is still to be freed. */
static void drain(void) {
        static const struct timeval late = { .tv_usec = 200000 };

        (void) event_base_loopexit(base, &late);
        (void) event_base_dispatch(base);
}

static int tear_down(void **state) {
        (void) state;
        drain();
        event_free(listener);
        (void) close(listen_fd);
        mint = tls_mint_free(mint);
        ca = tls_ca_free(ca);
        event_base_free(base);
        return unlink(ca_path);
}

static void on_output(int fd, short what, void *arg) {
        ssize_t n = (what & EV_TIMEOUT) ? 0 : read(fd, output + n_output, sizeof(output) - 1 - n_output);

        (void) arg;
        if (n > 0)
                n_output += (size_t) n;
        else
                (void) event_base_loopbreak(base);
}

/* Runs a program to its end while the server serves. Returns its exit status; what it wrote is in output. */
static int run(const char *const argv[]) {
        static const struct timeval patience = { .tv_sec = 20 };
        posix_spawn_file_actions_t actions;
        struct event *reader;
        int pipe_fds[2], status = -1;
        pid_t pid;

        n_output = 0;
        memset(output, 0, sizeof(output));
        assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
        assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
        (void) posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        (void) posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1);
        (void) posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 2);
        if (posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *) (uintptr_t) argv, environ) != 0)
                fail_msg("%s cannot be started", argv[0]);
        (void) posix_spawn_file_actions_destroy(&actions);
        (void) close(pipe_fds[1]);
        reader = event_new(base, pipe_fds[0], EV_READ | EV_PERSIST, on_output, NULL);
        (void) event_add(reader, &patience);
        (void) event_base_dispatch(base);
        event_free(reader);
        (void) close(pipe_fds[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int curl(const char *name, const char *ca_option, const char *ca_value) {
        char url[96], resolve[96];
        const char *const argv[] = { "curl",  "-sS",     "--noproxy", "*", "--resolve",
                                     resolve, ca_option, ca_value,    url, NULL };

        (void) snprintf(url, sizeof(url), "https://%s:%u/", name, port);
        (void) snprintf(resolve, sizeof(resolve), "%s:%u:127.0.0.1", name, port);
        return run(argv);
}

static void curl_trusts_the_leaf(void **state) {
        (void) state;
        assert_int_equal(curl(NAME, "--cacert", ca_path), 0);
        assert_string_equal(output, "gabion");
        assert_int_equal(curl(NAME, "--tls-max", "1.2"), 60); /* without our CA: no trust */
        assert_int_equal(curl("evil.example", "--cacert", ca_path), 35);
}

static void openssl_verifies_the_chain(void **state) {
        char at[32];
        const char *const argv[] = { "openssl",
                                     "s_client",
                                     "-connect",
                                     at,
                                     "-servername",
                                     NAME,
                                     "-CAfile",
                                     ca_path,
                                     "-verify_return_error",
                                     "-verify_hostname",
                                     NAME,
                                     "-alpn",
                                     "h2,http/1.1",
                                     NULL };

        (void) state;
        (void) snprintf(at, sizeof(at), "127.0.0.1:%u", port);
        assert_int_equal(run(argv), 0);
        assert_non_null(strstr(output, "Verify return code: 0 (ok)"));
        assert_non_null(strstr(output, "ALPN protocol: http/1.1"));
        assert_non_null(strstr(output, "Verified peername: " NAME));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(curl_trusts_the_leaf),
                cmocka_unit_test(openssl_verifies_the_chain),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
