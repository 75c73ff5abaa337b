/* net.h - the network of a sandbox that has one. Part of sandbox.h, which includes it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"

struct err;
struct sandbox;

/* A network namespace, and the sockets that were made in it; each -1 if not there (any more). */
struct netns {
        int ns_fd;
        int route_fd, filter_fd;           /* netlink: addresses, routes; rules */
        int socket_fds[PLAN_NET_SOCKETS];  /* what egress gets */
        int canary_fds[PLAN_NET_CANARIES]; /* one attempt each */
        uint64_t inodes[PLAN_NET_SOCKETS]; /* of socket_fds, when they are with egress */
};

/* Closes our copies of what egress has now; and makes new ones after egress' death. */
void sandbox_net_handed_over(struct sandbox *sb);
int sandbox_net_listen(struct sandbox *sb, const struct plan *plan, struct err *err);

/* For a sandbox that somebody else made: opens the namespace of its agent (agent_pid, proc_fd), and what reads it back
 * and tries it. Whoever calls must know that this process is the agent. sandbox_net_close() gives everything back. */
int sandbox_net_attach(struct sandbox *sb, struct err *err);
/* Only the namespace: for listeners. Its number, which no other has while it lives. */
int sandbox_net_open(struct sandbox *sb, uint64_t *ret_inode, struct err *err);
void sandbox_net_close(struct sandbox *sb);

/* A socket that belongs to the sandbox's namespace: what it reaches, the sandbox reaches. Returns the descriptor. */
int sandbox_net_socket(const struct sandbox *sb, bool six, bool datagram, struct err *err);

/*
 * Reads interfaces, addresses, routes and rules back from the kernel, now, and compares them with the plan; 0 without a
 * network. 0; or negative with the first difference in *err, and the name of the control in *ret_control.
 */
int sandbox_net_verify(const struct sandbox *sb, const struct plan *plan, const char **ret_control, struct err *err);

/* Tries what must be refused, from the sandbox's namespace; once, when egress has the listeners. */
int sandbox_net_canary(struct sandbox *sb, const struct plan *plan, struct err *err);

enum { SANDBOX_PATH = 108 }; /* what an address of a socket holds */

/* The sandbox can be spoken to: its name is kept with its slot, and a socket at `path` is removed with it. */
int sandbox_announce(struct sandbox *sb, char path[SANDBOX_PATH], struct err *err);
/* Where the socket of a running sandbox of this user is; for another process, which has not called sandbox_enter(). */
int sandbox_find(const char *id, char path[SANDBOX_PATH], struct err *err);
