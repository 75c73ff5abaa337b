/* user.c - see user.h. */
#include "base/user.h"

#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

enum { NOBODYS = 65533 };

bool user_find(const char *name, uid_t *ret_uid, gid_t *ret_gid) {
        FILE *f = fopen("/etc/passwd", "re");
        struct passwd *p = NULL;

        while (f && (p = fgetpwent(f)) && !str_eq(p->pw_name, name))
                ;
        if (p) {
                *ret_uid = p->pw_uid;
                *ret_gid = p->pw_gid;
        }
        if (f)
                (void) fclose(f);
        return p != NULL;
}

int user_service(const char *name, uid_t *ret_uid, gid_t *ret_gid, bool *ret_made_up) {
        uint64_t id;

        *ret_made_up = false;
        if (user_find(*name ? name : "gabion", ret_uid, ret_gid))
                return *ret_uid ? 0 : -EPERM;
        *ret_made_up = !*name;
        if (!*name)
                id = NOBODYS;
        else if (str_to_u64(name, UINT32_MAX - 1, &id) < 0)
                return -ENOENT;
        *ret_uid = (uid_t) id;
        *ret_gid = (gid_t) id;
        return id ? 0 : -EPERM;
}
