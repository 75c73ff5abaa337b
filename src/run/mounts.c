/*
 * mounts.c - the sources of a person's mounts: opened once, named canonically, and refused if they are too dangerous.
 *
 * The path is resolved a single time, by open(O_PATH); what the kernel then calls that descriptor is checked, and the
 * descriptor itself is mounted. A link that changes meanwhile changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "plan/plan.h"
#include "run/loop.h"

static int canonical(int fd, char *dst, size_t cap) {
        char link[40];
        ssize_t n;

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, dst, cap);
        if (n < 0)
                return -errno;
        if ((size_t) n >= cap)
                return -ENAMETOOLONG;
        dst[n] = '\0';
        return 0;
}

static int mount_open(const struct run_options *o, struct policy_mount *m, int *ret, struct err *err) {
        AUTO_FD int fd = open(m->source, O_PATH | O_CLOEXEC);
        struct stat st;
        const char *why;
        int r;

        if (fd < 0)
                return err_set(err, -errno, ERR_NOT_FOUND, "mount source '%.120s': %s", m->source, strerror(errno));
        if (fstat(fd, &st) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "mount source '%.120s': %s", m->source, strerror(errno));
        r = canonical(fd, m->source, sizeof(m->source));
        if (r < 0)
                return err_set(err, r, ERR_INVALID, "mount source: %s", strerror(-r));
        why = plan_mount_refused(m->source, o->home);
        if (S_ISSOCK(st.st_mode))
                why = "it is a socket of the host";
        if (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode))
                why = "it is a device of the host";
        if (why && !o->sensitive_mounts)
                return err_set(err, -EPERM, ERR_DENIED,
                               "mount source '%.120s' is refused: %s; --allow-sensitive-mounts overrides this",
                               m->source, why);
        if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !o->sensitive_mounts)
                return err_set(err, -EINVAL, ERR_INVALID, "mount source '%.120s' is neither directory nor file",
                               m->source);
        *ret = TAKE_FD(fd);
        return 0;
}

int mounts_open(const struct run_options *o, int fds[POLICY_MOUNTS], struct err *err) {
        for (size_t i = 0; i < o->policy->n_mounts; i++) {
                int r = mount_open(o, &o->policy->mounts[i], &fds[i], err);

                if (r < 0)
                        return r;
        }
        return 0;
}
