/* isolate.c - see isolate.h. The order is that of main.c: each stage would forbid the one before. */
#include "notary/isolate.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/sys.h"
#include "seccomp/seccomp.h"

/* Landlock's file rights, by the ABI that brought them. */
enum {
        FS_WRITE = BIT(1),
        FS_READ = BIT(2),
        FS_LIST = BIT(3),
        FS_REMOVE = BIT(5),
        FS_MAKE_DIR = BIT(7),
        FS_MAKE_FILE = BIT(8),
        FS_ABI_1 = BIT(13) - 1,
        FS_REFER = BIT(13),    /* 2 */
        FS_TRUNCATE = BIT(14), /* 3 */
};

int isolate_start(struct err *err) {
        int r = sys_close_range(3, ~0u, 0);

        (void) umask(077);
        (void) clearenv();
        if (r == 0)
                r = sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        if (r == 0)
                r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "isolation: start: %s", strerror(-r)) : 0;
}

int isolate_user(uid_t uid, gid_t gid, gid_t readers, struct err *err) {
        int r;

        if (setgroups(readers == (gid_t) -1 ? 0 : 1, &readers) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "isolation: groups: %s", strerror(errno));
        r = sys_setresgid(gid);
        if (r == 0)
                r = sys_setresuid(uid);
        if (r == 0)
                r = sys_capset(0, 0, 0);
        if (r == 0 && uid != 0 && sys_setresuid(0) == 0)
                r = -EPERM; /* it came back: then nothing was given up */
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "isolation: user %u: %s", uid, strerror(-r)) : 0;
}

int isolate_with_parent(pid_t parent, struct err *err) {
        int r = sys_prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);

        if (r == 0 && getppid() != parent)
                r = -ESRCH;
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "isolation: the parent %d: %s", (int) parent, strerror(-r)) : 0;
}

int isolate_fs(int log_fd, int socket_dir_fd, struct err *err) {
        int abi = sys_landlock_create(NULL, 0);
        uint64_t handled = FS_ABI_1 | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0);
        uint64_t log = FS_WRITE | FS_READ | FS_LIST | FS_REMOVE | FS_MAKE_DIR | FS_MAKE_FILE | FS_TRUNCATE;
        const struct sys_landlock_attr attr = { .handled_fs = handled };
        AUTO_FD int rules = -1;
        int r;

        if (abi < 1)
                return err_set(err, -EOPNOTSUPP, ERR_INTERNAL,
                               "isolation: this kernel has no Landlock; --without-landlock goes without");
        rules = sys_landlock_create(&attr, sizeof(attr.handled_fs));
        r = rules < 0 ? rules : sys_landlock_add_path(rules, log & handled, log_fd);
        if (r == 0 && socket_dir_fd >= 0)
                r = sys_landlock_add_path(rules, FS_REMOVE, socket_dir_fd);
        if (r == 0)
                r = sys_landlock_restrict(rules, 0);
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "isolation: files: %s", strerror(-r)) : 0;
}

int isolate_calls(struct err *err) {
        enum { ALL_THREADS = 1 };
        struct seccomp_program p;
        int r;

        seccomp_program(SECCOMP_STRICT, &p);
        r = sys_seccomp_filter(p.insns, p.n, ALL_THREADS);
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "isolation: system calls: %s", strerror(-r)) : 0;
}
