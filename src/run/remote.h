/* remote.h - speaking to a `gabion run` of the same user that is under way. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/hash.h"

struct err;
struct policy;

enum { REMOTE_CONTROL = 48, REMOTE_FOUND = 200 };

/* The sandbox's supervisor, by the sandbox's id. Returns a descriptor. */
int remote_open(const char *sandbox, struct err *err);
/* The egress document in force (policy/net.h reads it), and the denials so far. The caller frees *ret. */
int remote_policy(int fd, char **ret, size_t *ret_n, struct err *err);
int remote_denials(int fd, char **ret, struct err *err);
/* The network of p is in force from now on for new connections; with drop, old ones that it denies are ended. */
int remote_update(int fd, const struct policy *p, bool drop, char ret_hash[HASH_TEXT], struct err *err);
/* The sandbox's state is read now and compared with its plan. 0: as planned; 1: what differs, in the two texts. */
int remote_check(int fd, char control[REMOTE_CONTROL], char found[REMOTE_FOUND], struct err *err);
/* An unconnected socket of the sandbox's namespace; what: "name:port", "address:port" or "name", for remote_verdict().
 * Returns the descriptor. */
int remote_socket(int fd, bool six, bool datagram, const char *what, struct err *err);
/* What egress said of that attempt: its record as JSON, {} if there is none (yet). The caller frees *ret. */
int remote_verdict(int fd, const char *what, char **ret, struct err *err);
