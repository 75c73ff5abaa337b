/* shim.h - a small host for tests of an agent that lives on by itself: listening sockets, a launcher, connections. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentproto/agentproto.h"

enum { SHIM_FILE_MAX = 4 * 1024 * 1024 };

struct shim {
        pid_t pid, launcher;
        char dir[32];
        int gate;
        uint32_t last;
};

/* One connection. */
struct conn {
        int fd;
        size_t len;
        uint8_t in[AP_FRAME_MAX];
        struct ap_head head; /* of the frame that conn_next() gave */
        uint8_t body[AP_FRAME_MAX];
        size_t n;
};

/* What became of a command: the first bytes of both streams together, in order. */
struct seen {
        struct ap_exit exit;
        uint64_t lost;
        uint32_t exec_errno;
        size_t n;
        char text[512 * 1024];
};

#define ARGS(...) ((const char *[]){ __VA_ARGS__, NULL })
#define SHELL(text) ARGS("sh", "-c", text)
/* A test that finds such a state. */
#define SHIM_TEST(f) cmocka_unit_test_setup_teardown(f, shim_set_up, shim_tear_down)

/* A configured agent with a launcher in *state. */
int shim_set_up(void **state);
int shim_tear_down(void **state);
/* landlock_fd < 0: none. */
struct shim *shim_start(int landlock_fd);
void shim_stop(struct shim *s);
/* Sends AP_SPAWN for a launcher with these controls (AP_RLIMIT: files of SHIM_FILE_MAX) and lets it go. Its pid as the
 * kernel says; 0 and *ret_errno if the agent refused. */
pid_t shim_launch(struct shim *s, uint32_t controls, uint32_t *ret_errno);
void shim_env(struct shim *s, const char *const *env, uint16_t n);

struct conn *conn_open(const struct shim *s);
void conn_close(struct conn *c);
void conn_send(struct conn *c, const void *p, size_t n);
void conn_u32(struct conn *c, enum ap_type type, uint32_t id, uint32_t v);
void conn_empty(struct conn *c, enum ap_type type, uint32_t id);
void conn_bytes(struct conn *c, enum ap_type type, uint32_t id, const void *p, size_t n);
/* The next frame, into the connection. False if none came within ms, or the connection ended. */
bool conn_next(struct conn *c, int ms);
/* The next frame must be of that type. */
void conn_expect(struct conn *c, enum ap_type type);
/* AP_ERROR must come; its errno. */
uint32_t conn_error(struct conn *c, char step[32]);
/* True if the agent has closed it. */
bool conn_has_ended(struct conn *c);

/* Defaults: uid 0, directory /, PATH, all credit. */
struct ap_start start_of(const char **argv);
/* Sends AP_START and waits for AP_RUNNING. */
struct ap_running start(struct conn *c, const struct ap_start *s);
struct ap_running attach(struct conn *c, uint32_t number, uint64_t from, uint8_t flags);
/* Reads frames until AP_EXITED of that command. Result in static storage. */
struct seen *finish(struct conn *c, uint32_t number);
