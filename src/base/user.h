/* user.h - accounts of this machine, from /etc/passwd only: a look-up over the network could hang, or lie. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* By name. */
bool user_find(const char *name, uid_t *ret_uid, gid_t *ret_gid);
/* Whom a service becomes: a name or number; "": `gabion` if there is such a user, else 65533 (*ret_made_up). -ENOENT;
 * root is nobody's choice: -EPERM. */
int user_service(const char *name, uid_t *ret_uid, gid_t *ret_gid, bool *ret_made_up);
