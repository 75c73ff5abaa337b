/*
 * fuzz_envd_agent.c - frames about commands from an agent that may be anybody, while clients start, follow and list.
 * Real requests through the http layer; the agent's side of the connection is the input. If that is odd, the second
 * start is held until half of it went by.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "base/err.h"
#include "base/str.h"
#include "envd/command.h"
#include "http/server.h"

enum { CLIENTS = 5, MAX = 65536 };

static struct {
        struct event_base *base;
        struct envd *envd;
        struct envd_target target;
        uint64_t held;
} site;

#define HEAD(path, type, length)                                                                                       \
        "POST /process.Process/" path " HTTP/1.1\r\nHost: localhost\r\nX-Access-Token: t\r\nContent-Type: "            \
        "application/" type "\r\nContent-Length: " length "\r\n\r\n"
static const char start[] = HEAD("Start", "connect+json", "28") "\0\0\0\0\x17{\"process\":{\"cmd\":\"x\"}}",
                  follow[] = HEAD("Connect", "connect+json", "26") "\0\0\0\0\x15{\"process\":{\"pid\":5}}",
                  list[] = HEAD("List", "json", "2") "{}",
                  input[] = HEAD("SendInput", "json", "46") "{\"process\":{\"pid\":5},\"input\":{\"stdin\":\"eHh4\"}}";
static const struct {
        const char *bytes;
        size_t n;
} requests[CLIENTS] = { { start, sizeof(start) - 1 },
                        { follow, sizeof(follow) - 1 },
                        { start, sizeof(start) - 1 },
                        { list, sizeof(list) - 1 },
                        { input, sizeof(input) - 1 } };

static void on_head(struct http_conn *c, const struct http_head *head, void *arg) {
        (void) arg;
        envd_serve(site.envd, c, head, &site.target, ENVD_PORT);
}

static int on_event(struct envd_target *t, const struct envd_event *ev, void *arg) {
        (void) t, (void) arg;
        return ev->kind == ENVD_EXEC && ev->call == site.held;
}

static void turn(void) {
        for (int i = 0; i < 4; i++)
                (void) event_base_loop(site.base, EVLOOP_NONBLOCK);
}

static struct bufferevent *client(struct http_server *s, const char *bytes, size_t n) {
        struct bufferevent *pair[2];
        struct err err = { 0 };

        if (bufferevent_pair_new(site.base, BEV_OPT_DEFER_CALLBACKS, pair) < 0 ||
            http_server_add(s, pair[0], NULL, &err) < 0)
                abort();
        (void) bufferevent_enable(pair[1], EV_READ | EV_WRITE);
        (void) bufferevent_write(pair[1], bytes, n);
        turn();
        return pair[1];
}

/* The connection that envd would open by itself. */
static struct control *pretend(void) {
        static const char health[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
        struct http_server_config config = { .on_head = on_head };
        struct http_server *s = NULL;
        struct control *k = calloc(1, sizeof(*k));
        struct err err = { 0 };

        if (!k || http_server_new(&s, site.base, &config, &err) < 0)
                abort();
        bufferevent_free(client(s, health, sizeof(health) - 1));
        turn();
        s = http_server_free(s);
        k->box = site.target.box;
        TAILQ_INIT(&k->commands);
        TAILQ_INIT(&k->wanted);
        TAILQ_INIT(&k->asked);
        if (agent_open_nowhere(site.envd, &commands_ops, k, &k->agent) < 0)
                abort();
        k->box->control = k;
        return k;
}

static void feed(struct control *k, struct evbuffer *in, const uint8_t *p, size_t n) {
        (void) evbuffer_add(in, p, n);
        while (site.target.box->control == k && evbuffer_get_length(in) > 0) {
                size_t before = evbuffer_get_length(in);

                agent_feed(k->agent, in);
                turn();
                if (evbuffer_get_length(in) == before)
                        break;
        }
        turn();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct http_server_config http = { .on_head = on_head };
        struct envd_config config = { 0 };
        struct bufferevent *clients[CLIENTS];
        struct http_server *server = NULL;
        struct evbuffer *in = evbuffer_new();
        struct control *k;
        struct err err = { 0 };

        if (!site.base)
                site.base = event_base_new();
        config.base = site.base;
        config.on_event = on_event;
        site.held = size % 2 ? 2 : 0;
        if (size > MAX || envd_new(&site.envd, &config, &err) < 0 ||
            http_server_new(&server, site.base, &http, &err) < 0)
                abort();
        site.target = (struct envd_target){
                .id = "x", .socket = "/nowhere", .users = { { "user", "/", 0, 0 } }, .n_users = 1, .token = "t"
        };
        k = pretend();
        for (int i = 0; i < CLIENTS; i++)
                clients[i] = client(server, requests[i].bytes, requests[i].n);
        if (site.target.box->n_calls != CLIENTS)
                abort(); /* all of them wait */
        feed(k, in, data, size / 2);
        envd_permitted(site.envd, &site.target, site.held, size % 4 == 3 ? -EACCES : 0);
        turn();
        feed(k, in, data + size / 2, size - size / 2);
        envd_drop(site.envd, &site.target);
        server = http_server_free(server);
        for (int i = 0; i < CLIENTS; i++)
                bufferevent_free(clients[i]);
        turn();
        site.envd = envd_free(site.envd);
        evbuffer_free(in);
        return 0;
}
