/*
 * server.c - a server of one sandbox for tests from outside: the http layer, envd, and a real agent without a sandbox
 * around it. usage: envd_server AGENT HOME [SOCKET of somebody who plays the agent]
 *
 * Prints its port. Lines on standard input: "drop" ends the sandbox, "forget" makes envd forget all it knows (as after
 * a restart of the daemon), "traffic TOKEN", "mask HOST" and "refuse" (no command may start) change it. Events go to
 * standard error. Ends with its input.
 */
#include "http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "../agentproto/process.h"
#include "../agentproto/shim.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "envd/envd.h"

static struct {
        struct envd *envd;
        struct envd_target target;
        struct shim *shim;
        struct event_base *base;
        bool gone, refuses;
        char traffic[64], mask[64];
} site;

static const char *const env[] = { "FROM_SANDBOX=yes", "LOGNAME=sandbox", NULL };

static void on_activity(struct envd_target *t, unsigned n_active, void *arg) {
        (void) t, (void) arg;
        (void) fprintf(stderr, "active %u\n", n_active);
}

static int on_event(struct envd_target *t, const struct envd_event *ev, void *arg) {
        static const char *const kinds[] = { "exec", "started", "exited", "file", "refused", "agent", "lost" };

        (void) t, (void) arg;
        (void) fprintf(stderr, "event %s user=%s pid=%u code=%d %s\n", kinds[ev->kind], ev->user, ev->pid, ev->code,
                       ev->text);
        return site.refuses && ev->kind == ENVD_EXEC ? -EPERM : 0;
}

/* The first user is the test's; there is no other launcher, unless it was killed. */
static void launch(struct envd_target *t, uint32_t uid, void *arg) {
        uint32_t err_no = 0;

        (void) arg;
        if (uid == 0 && (shim_launch(site.shim, AP_CLOSE_FDS | AP_RLIMIT, &err_no) > 0 || err_no == EEXIST))
                envd_launched(site.envd, t, uid, 0);
        else
                envd_launched(site.envd, t, uid, -ENOENT);
}

static int usage(struct envd_target *t, struct envd_usage *ret, void *arg) {
        (void) t, (void) arg;
        *ret = (struct envd_usage){ 2, 12.5, 512 << 20, 128 << 20, 1 << 20 };
        return 0;
}

static void on_reply(struct envd_target *t, struct http_conn *c, unsigned status, struct buf *lines, void *arg) {
        (void) t, (void) c, (void) arg;
        http_addf(lines, "X-Test-Status", "%u", status);
}

static void on_head(struct http_conn *c, const struct http_head *head, void *arg) {
        char id[ID_TEXT];
        uint16_t port = ENVD_PORT;
        struct err err = { 0 };
        int r = envd_route(head, id, &port);

        (void) arg;
        if (r == 0 && envd_is_signed(head, site.target.token)) {
                r = 1;
                (void) str_copy(id, sizeof(id), site.target.id);
        }
        if (r <= 0)
                (void) http_reply(c, r < 0 ? 400 : 421, NULL, "nobody\n", 7, &err);
        else if (site.gone || !str_eq(id, site.target.id))
                envd_serve_gone(site.envd, c, head, id);
        else
                envd_serve(site.envd, c, head, &site.target, port);
}

static void on_line(struct bufferevent *bev, void *arg) {
        char *line;

        (void) arg;
        while ((line = evbuffer_readln(bufferevent_get_input(bev), NULL, EVBUFFER_EOL_LF))) {
                if (str_eq(line, "drop")) {
                        site.gone = true;
                        envd_drop(site.envd, &site.target);
                } else if (str_eq(line, "forget")) {
                        envd_drop(site.envd, &site.target);
                } else if (str_has_prefix(line, "traffic ")) {
                        assert_int_equal(str_copy(site.traffic, sizeof(site.traffic), line + 8), 0);
                        site.target.traffic_token = *site.traffic ? site.traffic : NULL;
                } else if (str_has_prefix(line, "mask ")) {
                        assert_int_equal(str_copy(site.mask, sizeof(site.mask), line + 5), 0);
                        site.target.mask_host = *site.mask ? site.mask : NULL;
                } else if (str_has_prefix(line, "refuse")) {
                        site.refuses = true;
                }
                free(line);
                (void) printf("ok\n");
                (void) fflush(stdout);
        }
}

static void on_input_end(struct bufferevent *bev, short what, void *arg) {
        (void) bev, (void) what, (void) arg;
        (void) event_base_loopbreak(site.base);
}

static int listen_here(void) {
        struct sockaddr_in a = { .sin_family = AF_INET };
        socklen_t n = sizeof(a);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        assert_int_equal(bind(fd, (struct sockaddr *) &a, sizeof(a)), 0);
        assert_int_equal(listen(fd, 256), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *) &a, &n), 0);
        (void) printf("%u\n", ntohs(a.sin_port));
        (void) fflush(stdout);
        return fd;
}

int main(int argc, char **argv) {
        static char socket_path[ENVD_SOCKET];
        struct http_server_config http = { .on_head = on_head };
        struct http_server *server = NULL;
        struct bufferevent *input;
        struct err err = { 0 };

        if (argc < 3 || argc > 4 || geteuid() != 0)
                return 2;
        (void) signal(SIGPIPE, SIG_IGN);
        process_use(argv[1]);
        site.shim = shim_start(-1);
        assert_true(shim_launch(site.shim, AP_CLOSE_FDS | AP_RLIMIT, NULL) > 0);
        shim_env(site.shim, env, 2);
        (void) snprintf(socket_path, sizeof(socket_path), "%s%s", argc == 4 ? argv[3] : site.shim->dir,
                        argc == 4 ? "" : "/agent");
        site.target = (struct envd_target){ .id = "sandboxunderthetests",
                                            .socket = socket_path,
                                            .users = { { "user", argv[2], 0, 0 }, { "ghost", "/", 54321, 54321 } },
                                            .n_users = 2,
                                            .env = env,
                                            .token = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0" };
        site.base = event_base_new();
        assert_int_equal(envd_new(&site.envd,
                                  &(struct envd_config){ .base = site.base,
                                                         .on_activity = on_activity,
                                                         .on_event = on_event,
                                                         .launch = launch,
                                                         .usage = usage,
                                                         .on_reply = on_reply },
                                  &err),
                         0);
        assert_int_equal(http_server_new(&server, site.base, &http, &err), 0);
        assert_int_equal(http_server_listen(server, listen_here(), NULL, &err), 0);
        input = bufferevent_socket_new(site.base, STDIN_FILENO, 0);
        bufferevent_setcb(input, on_line, NULL, on_input_end, NULL);
        (void) bufferevent_enable(input, EV_READ);
        (void) event_base_dispatch(site.base);
        envd_drop(site.envd, &site.target);
        server = http_server_free(server);
        bufferevent_free(input);
        for (int i = 0; i < 4; i++) /* libevent frees what has callbacks under way in the loop only */
                (void) event_base_loop(site.base, EVLOOP_NONBLOCK);
        site.envd = envd_free(site.envd);
        (void) event_base_loop(site.base, EVLOOP_NONBLOCK);
        event_base_free(site.base);
        shim_stop(site.shim);
        return 0;
}
