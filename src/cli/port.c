/* port.c - `gabion port`: how a port of a sandbox is reached, or HTTP passed on to it from a port of this machine. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/forward.h"
#include "json/json.h"

static int set(void *into, int key, const char *value) {
        (void) key;
        *(const char **) into = value;
        return -1;
}

/* [ADDRESS:]PORT; IPv6 in brackets. */
static int parse_listen(const char *text, struct addr *ret, uint16_t *ret_port) {
        const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : text;
        char address[ADDR_TEXT + 2] = "127.0.0.1";
        size_t n = colon ? (size_t) (colon - text) : 0;
        uint64_t port;

        if (colon && text[0] == '[' && n > 2 && text[n - 1] == ']') {
                text++;
                n -= 2;
        }
        if (colon && (n == 0 || n >= sizeof(address)))
                return -EINVAL;
        if (colon) {
                memcpy(address, text, n);
                address[n] = '\0';
        }
        if (str_eq(address, "localhost"))
                (void) str_copy(address, sizeof(address), "127.0.0.1");
        if (str_to_u64(digits, UINT16_MAX, &port) < 0)
                return -EINVAL;
        *ret_port = (uint16_t) port;
        return addr_parse(address, ret);
}

/* A listening socket, and where it really listens (port 0 is any). */
static int open_listener(const char *text, char shown[ADDR_TEXT + 16], struct err *err) {
        struct sockaddr_storage sa = { 0 };
        socklen_t n = sizeof(sa);
        char host[ADDR_TEXT];
        AUTO_FD int fd = -1;
        struct addr a;
        uint16_t port;
        int one = 1;

        if (parse_listen(text, &a, &port) < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "--listen '%.60s': ADDRESS:PORT or PORT is expected", text);
        n = (socklen_t) addr_to_sockaddr(&a, port, &sa);
        fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
            bind(fd, (const struct sockaddr *) &sa, n) < 0 || listen(fd, SOMAXCONN) < 0)
                return err_set(err, -errno, ERR_INVALID, "--listen %.60s: %s", text, strerror(errno));
        n = sizeof(sa);
        if (getsockname(fd, (struct sockaddr *) &sa, &n) < 0 ||
            addr_from_sockaddr((const struct sockaddr *) &sa, &a, &port) < 0)
                return err_set(err, -EIO, ERR_INTERNAL, "--listen %.60s", text);
        addr_text(&a, host);
        (void) snprintf(shown, ADDR_TEXT + 16, a.family == ADDR_V6 ? "[%s]:%u" : "%s:%u", host, (unsigned) port);
        return TAKE_FD(fd);
}

static void link_text(const struct client_box *box, const struct client_url *server, uint16_t port, char *dst,
                      size_t cap) {
        dst[0] = '\0';
        if (box->domain[0])
                (void) snprintf(dst, cap, "%s://%u-%s.%s/", server->scheme == CLIENT_HTTPS ? "https" : "http",
                                (unsigned) port, box->id, box->domain);
}

static int print_json(const struct client_box *box, const struct client_url *server, uint16_t port, struct err *err) {
        CLEANUP(json_freep) struct json *o = json_new_object();
        struct json *headers = json_new_object();
        char link[512], number[8];

        link_text(box, server, port, link, sizeof(link));
        (void) snprintf(number, sizeof(number), "%u", (unsigned) port);
        json_set_str(o, "sandbox", box->id);
        json_set_int(o, "port", port);
        json_set_str(o, "url", link[0] ? link : NULL);
        json_set_str(o, "server", server->text);
        json_set_str(headers, "E2b-Sandbox-Id", box->id);
        json_set_str(headers, "E2b-Sandbox-Port", number);
        if (box->traffic[0])
                json_set_str(headers, "e2b-traffic-access-token", box->traffic);
        json_set(o, "headers", headers);
        return remote_print_json(o, true, err);
}

static void print_text(const struct client_box *box, const struct client_url *server, uint16_t port) {
        char link[512];

        link_text(box, server, port, link, sizeof(link));
        if (link[0]) {
                remote_print(link);
                (void) putchar('\n');
        }
        if (server->scheme == CLIENT_UNIX)
                (void) printf(
                        "curl --unix-socket %s -H 'E2b-Sandbox-Id: %s' -H 'E2b-Sandbox-Port: %u' http://localhost/\n",
                        server->path, box->id, (unsigned) port);
        else
                (void) printf("curl -H 'E2b-Sandbox-Id: %s' -H 'E2b-Sandbox-Port: %u' %s/\n", box->id, (unsigned) port,
                              server->text);
        (void) printf("gabion port %s %u --listen 127.0.0.1:%u\n", box->name[0] ? box->name : box->id, (unsigned) port,
                      (unsigned) port);
        if (box->traffic[0])
                (void) printf("(with the header e2b-traffic-access-token, which --json shows; --listen adds it)\n");
}

int remote_port(struct remote *r, int argc, char **argv) {
        const char *listens = NULL;
        char shown[ADDR_TEXT + 16];
        struct client_box box = { 0 };
        AUTO_FD int fd = -1;
        struct err err = { 0 };
        uint64_t port = 0;
        int at = 0, code = remote_options_mixed(r, argc, argv, &at, set, &listens);

        if (code >= 0)
                return code;
        if (argc - at != 2)
                return cli_usage("port", "a sandbox and one of its ports are expected");
        if (str_to_u64(argv[at + 1], UINT16_MAX, &port) < 0 || port == 0)
                return cli_usage("port", "'%.40s' is no port", argv[at + 1]);
        if (remote_open(r, &err) < 0 || client_box_find(r->client, argv[at], &box, &err) < 0)
                return cli_fail(&err);
        if (!listens && r->json)
                return print_json(&box, client_server(r->client), (uint16_t) port, &err) < 0 ? cli_fail(&err) : 0;
        if (!listens) {
                print_text(&box, client_server(r->client), (uint16_t) port);
                return 0;
        }
        fd = open_listener(listens, shown, &err);
        if (fd < 0)
                return cli_fail(&err);
        (void) printf("http://%s/ is port %u of %s; Ctrl-C ends it\n", shown, (unsigned) port, argv[at]);
        (void) fflush(stdout);
        return forward_serve(r->client, &box, (uint16_t) port, TAKE_FD(fd), &err) < 0 ? cli_fail(&err) : 0;
}
