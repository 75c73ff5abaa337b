/* setup.h - what has to be there before the server serves: places, the store, keys, the first tenant. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct config;
struct daemon;
struct err;

/* Whom to become: the user that the options name (from /etc/passwd, or a number), else `gabion`, else 65533. As another
 * user than root: oneself. */
int setup_user(const struct config *c, uid_t *ret_uid, gid_t *ret_gid, struct err *err);
/* Makes the data directory (0700, of that user). While still root. */
int setup_data(const struct config *c, uid_t uid, gid_t gid, struct err *err);
/* Opens the file for the first key, made 0600. While still root; -1 if none is wanted. */
int setup_key_file(const struct config *c, struct err *err);
/* Opens the store and the server's own key. At the first start makes the operators' tenant and its key, and writes the
 * key to key_fd, or with the variables to export to standard output. */
int setup_store(struct daemon *d, int key_fd, struct err *err);
