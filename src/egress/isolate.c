/* isolate.c - see isolate.h; isolate_calls() is in calls.c. */
#include "egress/isolate.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "egressproto/egressproto.h"

enum { NOBODY = 65534, CAPS = 64, FILE_BYTES = 128 << 20 };

/* Every access to files that Landlock knows up to ABI 5, and scopes of ABI 6: abstract sockets, signals. */
enum { LANDLOCK_ABI_SCOPES = 6, LANDLOCK_ABI_IOCTL = 5, LANDLOCK_ABI_TRUNCATE = 3, LANDLOCK_ABI_REFER = 2 };

static int fail(struct err *err, const char *stage, const char *what) {
        return err_set(err, -errno, ERR_INTERNAL, "isolate: %s: %s: %s", stage, what, strerror(errno));
}

static int set_limit(int what, rlim_t soft, rlim_t hard) {
        const struct rlimit l = { .rlim_cur = soft, .rlim_max = hard };

        return setrlimit(what, &l);
}

int isolate_start(struct err *err) {
        int type = 0;
        socklen_t n = sizeof(type);
        struct rlimit files;
        int r = sys_close_range(EGP_FD + 1, ~0u, 0);

        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "isolate: start: close_range");
        if (getsockopt(EGP_FD, SOL_SOCKET, SO_TYPE, &type, &n) < 0 || type != SOCK_SEQPACKET)
                return err_set(err, -ENOTSOCK, ERR_INVALID,
                               "descriptor %d is no control socket; gabion starts this program", EGP_FD);
        if (getrlimit(RLIMIT_NOFILE, &files) < 0 || set_limit(RLIMIT_NOFILE, files.rlim_max, files.rlim_max) < 0)
                return fail(err, "start", "open files");
        if (set_limit(RLIMIT_CORE, 0, 0) < 0 || set_limit(RLIMIT_FSIZE, FILE_BYTES, FILE_BYTES) < 0)
                return fail(err, "start", "limits");
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || chdir("/") < 0)
                return fail(err, "start", "process");
        (void) umask(S_IRWXG | S_IRWXO);
        /* splice(2) has no MSG_NOSIGNAL. */
        if (sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL) < 0)
                return fail(err, "start", "signals");
        return 0;
}

/* From the file alone: other sources of users would load their libraries into this process while it is still root. */
static void find_user(uid_t *uid, gid_t *gid) {
        FILE *f = fopen("/etc/passwd", "re");
        const struct passwd *p;

        *uid = *gid = NOBODY;
        while (f && (p = fgetpwent(f)))
                if (str_eq(p->pw_name, "gabion-egress") && p->pw_uid != 0 && p->pw_gid != 0) {
                        *uid = p->pw_uid;
                        *gid = p->pw_gid;
                }
        if (f)
                (void) fclose(f);
}

int isolate_user(struct err *err) {
        uid_t uid;
        gid_t gid;
        int r = 0;

        for (int cap = 0; cap < CAPS; cap++)
                (void) prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); /* without CAP_SETPCAP there is nothing to lose */
        find_user(&uid, &gid);
        if (geteuid() == 0) {
                r = sys_setgroups_none();
                if (r == 0)
                        r = sys_setresgid(gid);
                if (r == 0)
                        r = sys_setresuid(uid);
                /* In a user namespace with a single id there is nobody else to become: root there is that one user. */
                if (r < 0 && (geteuid() != 0 || (r != -EINVAL && r != -EPERM)))
                        return err_set(err, r, ERR_INTERNAL, "isolate: user: cannot become %u", (unsigned) uid);
        }
        r = sys_capset(0, 0, 0);
        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "isolate: user: capabilities");
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
                return fail(err, "user", "ambient capabilities");
        /* Becoming another user makes a process dumpable again. The end of the control socket ends us too, but only
         * when we look at it; a supervisor that was killed meanwhile leaves nobody else who would. */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
            prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
                return fail(err, "user", "no new privileges");
        return 0;
}

int isolate_files(struct err *err) {
        int abi = sys_landlock_create(NULL, 0);
        unsigned rights = abi >= LANDLOCK_ABI_IOCTL      ? 16
                          : abi >= LANDLOCK_ABI_TRUNCATE ? 15
                          : abi >= LANDLOCK_ABI_REFER    ? 14
                                                         : 13;
        const struct sys_landlock_attr attr = { .handled_fs = (1u << rights) - 1,
                                                .scoped = abi >= LANDLOCK_ABI_SCOPES ? 3 : 0 };
        AUTO_FD int fd = abi < 0 ? abi : sys_landlock_create(&attr, abi >= LANDLOCK_ABI_SCOPES ? sizeof(attr) : 8);
        int r = fd < 0 ? fd : sys_landlock_restrict(fd, 0);

        return r < 0 ? err_set(err, r, ERR_INTERNAL, "isolate: files: Landlock: %s", strerror(-r)) : 0;
}
