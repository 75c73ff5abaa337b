/* host.h - a small host for tests: starts the real gabion-agent, without namespaces, and speaks its protocol. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentproto/agentproto.h"

struct host {
        pid_t pid;
        int control, gate;
        size_t len;
        uint8_t in[AP_FRAME_MAX];
};

/* One answer over the gate: pair >= 0 after AP_READY; else err_no and step. */
struct answer {
        int pair, listener;
        pid_t pid; /* as the kernel says */
        bool here; /* AP_HERE, and nothing else is said */
        struct ap_ready ready;
        uint32_t err_no;
        char step[32];
};

/* What became of a command. Output of both streams, as it came. */
struct outcome {
        struct ap_exit exit;
        size_t n[3];
        char text[3][65536]; /* the first bytes of stream 1 and 2, NUL-terminated */
};

#define ARGS(...) ((const char *[]){ __VA_ARGS__, NULL })
#define SHELL(text) ARGS("sh", "-c", text)
/* A test that finds a configured agent in *state. */
#define HOST_TEST(f) cmocka_unit_test_setup_teardown(f, host_set_up, host_tear_down)

int host_set_up(void **state);
int host_tear_down(void **state);
/* landlock_fd is borrowed, < 0: a dummy. */
struct host *host_start(int landlock_fd);
/* Sends AP_CONFIGURE with the four capabilities of docs/protocol/agent.md. */
void host_configure(struct host *h);
void host_send(struct host *h, const void *p, size_t n);
void host_u32(struct host *h, enum ap_type type, uint32_t id, uint32_t v);
void host_stdin(struct host *h, uint32_t id, const void *p, size_t n);
void host_eof(struct host *h, uint32_t id);
void host_spawn(struct host *h, uint32_t id, const struct ap_spawn *s);
/* Defaults: no controls, directory /, all credit, NULL-terminated arguments, PATH set. */
struct ap_spawn host_command(const char **argv);
struct answer host_gate(struct host *h);
/* Says 'g' and closes the rest. */
void host_go(struct answer *a);
/* The next frame; false if none came within ms. *body is borrowed until the next call. Fails the test if the agent
 * ended. */
bool host_next(struct host *h, int ms, struct ap_head *head, const uint8_t **body, size_t *n);
/* Reads frames until AP_EXITED of id. */
void host_finish(struct host *h, uint32_t id, struct outcome *o);
/* spawn, gate, go, finish; input may be NULL. Result in static storage. */
struct outcome *host_run(struct host *h, struct ap_spawn *s, const char *input);
/* Waits at most five seconds for the agent to end by itself; its exit status, or -1. Skips the test if this user may
 * not start an agent. */
int host_wait(struct host *h);
void host_stop(struct host *h);
