/* isolate.c - see isolate.h; isolate_calls() is in calls.c. The order is that of main.c: each stage would forbid the
 * one before. */
#include "daemon/isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/sys.h"
#include "daemon/limits.h"

enum { CAPS = 64, FILES = 4 * DAEMON_CONNS };

/* Landlock's file rights by the ABI that brought them, and the scopes of ABI 6: abstract sockets, signals. */
enum {
        FS_WRITE = BIT(1),
        FS_READ = BIT(2),
        FS_LIST = BIT(3),
        FS_REMOVE = BIT(5),
        FS_MAKE_FILE = BIT(8),
        FS_ABI_1 = BIT(13) - 1,
        FS_REFER = BIT(13),
        FS_TRUNCATE = BIT(14),
        FS_IOCTL = BIT(15),
        SCOPES = 3,
};

static int fail(struct err *err, const char *what) {
        return err_set(err, -errno, ERR_INTERNAL, "isolation: %s: %s", what, strerror(errno));
}

static int set_limit(int what, rlim_t v) {
        const struct rlimit l = { .rlim_cur = v, .rlim_max = v };

        return setrlimit(what, &l);
}

int isolate_start(struct err *err) {
        struct rlimit files;
        int r = sys_close_range(3, ~0u, 0);

        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "isolation: descriptors");
        (void) umask(S_IRWXG | S_IRWXO);
        (void) clearenv();
        if (getrlimit(RLIMIT_NOFILE, &files) < 0 ||
            set_limit(RLIMIT_NOFILE, files.rlim_max < FILES ? files.rlim_max : FILES) < 0)
                return fail(err, "open files");
        if (set_limit(RLIMIT_CORE, 0) < 0)
                return fail(err, "limits");
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return fail(err, "process");
        /* Whoever goes away is told by the call that writes. */
        if (sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL) < 0)
                return fail(err, "signals");
        return 0;
}

int isolate_user(uid_t uid, gid_t gid, struct err *err) {
        int r = 0;

        for (int cap = 0; cap < CAPS; cap++)
                (void) prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); /* without CAP_SETPCAP there is nothing to lose */
        if (geteuid() == 0) {
                r = sys_setgroups_none();
                if (r == 0)
                        r = sys_setresgid(gid);
                if (r == 0)
                        r = sys_setresuid(uid);
                if (r == 0 && sys_setresuid(0) == 0)
                        r = -EPERM; /* it came back: then nothing was given up */
        }
        if (r == 0)
                r = sys_capset(0, 0, 0);
        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "isolation: user %u: %s", (unsigned) uid, strerror(-r));
        /* Becoming another user makes a process dumpable again. */
        return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? fail(err, "process") : 0;
}

int isolate_with_parent(pid_t parent, struct err *err) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
                return fail(err, "parent");
        /* It may have ended before that call; then we are somebody else's child, and nobody will tell. */
        return getppid() != parent ? err_set(err, -ECHILD, ERR_INTERNAL, "isolation: the parent has ended") : 0;
}

int isolate_files(const char *data, struct err *err) {
        int abi = sys_landlock_create(NULL, 0), r;
        uint64_t handled =
                FS_ABI_1 | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0) | (abi >= 5 ? FS_IOCTL : 0);
        uint64_t own = FS_WRITE | FS_READ | FS_LIST | FS_REMOVE | FS_MAKE_FILE | FS_TRUNCATE;
        const struct sys_landlock_attr attr = { .handled_fs = handled, .scoped = abi >= 6 ? SCOPES : 0 };
        AUTO_FD int rules = -1, dir = open(data, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (abi < 1)
                return err_set(err, -EOPNOTSUPP, ERR_INTERNAL,
                               "isolation: this kernel has no Landlock; --without-landlock goes without");
        if (dir < 0)
                return err_set(err, -errno, ERR_INVALID, "data directory %.150s: %s; user %u must be able to reach it",
                               data, strerror(errno), (unsigned) geteuid());
        rules = sys_landlock_create(&attr, abi >= 6 ? sizeof(attr) : sizeof(attr.handled_fs));
        r = rules < 0 ? rules : sys_landlock_add_path(rules, own & handled, dir);
        if (r == 0)
                r = sys_landlock_restrict(rules, 0);
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "isolation: files: %s", strerror(-r)) : 0;
}
