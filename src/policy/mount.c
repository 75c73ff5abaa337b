/*
 * mount.c - which paths a mount may have, and the command line's SRC:DST[:ro|rw].
 *
 * Targets are compared as text later (twice the same, one inside the other), so only the normal form is accepted: what
 * differs as text then differs as a place. Reserved are the places that Gabion fills itself or that decide what runs
 * inside; nothing may be put at or below them.
 */
#include "policy/mount.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "policy/policy.h"

enum { SHOWN = 80 };

static const char *const reserved[] = { "proc", "sys", "dev", "etc", "usr", "bin", "sbin", "run", "boot" };

static bool is_reserved(const char *component, size_t n) {
        if (n >= 3 && strncmp(component, "lib", 3) == 0)
                return true; /* lib, lib32, lib64, libx32, libexec */
        for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
                if (strlen(reserved[i]) == n && strncmp(component, reserved[i], n) == 0)
                        return true;
        return false;
}

static bool has_control(const char *s) {
        const unsigned char *p = (const unsigned char *) s;

        for (; *p; p++)
                if (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f))
                        return true;
        return false;
}

int policy_mount_check_source(const char *path, struct err *err) {
        if (!*path)
                return err_set(err, -EINVAL, ERR_INVALID, "a path must not be empty");
        if (strlen(path) >= POLICY_PATH)
                return err_set(err, -EINVAL, ERR_INVALID, "a path must be shorter than %d bytes", POLICY_PATH);
        if (!json_is_utf8(path))
                return err_set(err, -EINVAL, ERR_INVALID, "a path must be UTF-8");
        if (has_control(path))
                return err_set(err, -EINVAL, ERR_INVALID, "a path must not have control characters");
        return 0;
}

bool policy_path_is_normal(const char *path) {
        if (*path != '/')
                return false;
        for (const char *p = path; *p;) {
                size_t n = strcspn(++p, "/");

                if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
                        return false;
                p += n;
        }
        return true;
}

int policy_mount_check_target(const char *path, struct err *err) {
        int r = policy_mount_check_source(path, err);

        if (r < 0)
                return r;
        if (*path != '/')
                return err_set(err, -EINVAL, ERR_INVALID, "'%.*s' must be absolute", SHOWN, path);
        if (!path[1])
                return err_set(err, -EINVAL, ERR_INVALID, "the root of the sandbox cannot be replaced");
        if (!policy_path_is_normal(path))
                return err_set(err, -EINVAL, ERR_INVALID, "'%.*s' must be without '.', '..', '//' and a '/' at the end",
                               SHOWN, path);
        if (is_reserved(path + 1, strcspn(path + 1, "/")))
                return err_set(err, -EINVAL, ERR_INVALID,
                               "'%.*s' is reserved; not allowed: anything in /proc /sys /dev /etc /usr /bin /sbin "
                               "/lib* /run /boot",
                               SHOWN, path);
        return 0;
}

int policy_mount_check_pair(const char *target, const char *later, struct err *err) {
        size_t n = strlen(later);

        if (strncmp(target, later, n) != 0)
                return 0;
        if (!target[n])
                return err_set(err, -EINVAL, ERR_INVALID, "'%.*s' is mounted twice", SHOWN, target);
        if (target[n] == '/')
                return err_set(err, -EINVAL, ERR_INVALID, "'%.*s' would hide '%.*s'; list the outer one first", SHOWN,
                               later, SHOWN, target);
        return 0;
}

/* Cuts the part up to the next ':' off *text into dst. Without a ':' it takes the rest and *text becomes NULL. */
static int next_part(const char **text, char *dst) {
        size_t n = strcspn(*text, ":");

        if (n >= POLICY_PATH)
                return -ENAMETOOLONG;
        memcpy(dst, *text, n);
        dst[n] = '\0';
        *text = (*text)[n] ? *text + n + 1 : NULL;
        return 0;
}

int policy_parse_mount(const char *text, struct policy_mount *ret, struct err *err) {
        struct policy_mount m = { .writable = false };
        const char *rest = text;
        int r;

        if (has_control(text))
                return err_set(err, -EINVAL, ERR_INVALID, "mount: a path must not have control characters");
        r = next_part(&rest, m.source);
        if (r == 0 && rest)
                r = next_part(&rest, m.target);
        if (r < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "mount: a path must be shorter than %d bytes", POLICY_PATH);
        if (!*m.source || !*m.target || (rest && !str_eq(rest, "ro") && !str_eq(rest, "rw")))
                return err_set(err, -EINVAL, ERR_INVALID, "mount '%.*s': must be SRC:DST, SRC:DST:ro or SRC:DST:rw",
                               SHOWN, text);
        m.writable = rest && str_eq(rest, "rw");
        r = policy_mount_check_source(m.source, err);
        if (r < 0)
                return err_wrap(err, "mount source");
        r = policy_mount_check_target(m.target, err);
        if (r < 0)
                return err_wrap(err, "mount target");
        *ret = m;
        return 0;
}
