/*
 * idmap.c - user namespaces and their maps. A namespace needs a process to be born: for the sandbox it is the janitor,
 * for the mapping of mounts a short-lived holder. The supervisor writes the maps from outside (only it may map a whole
 * range) and keeps a descriptor.
 */
#include "sandbox/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/sys.h"
#include "sandbox/enter.h"

enum { HOLDER_STACK = 8192 };

uint32_t sandbox_host_uid(const struct sandbox *sb, uint32_t inside) {
        if (sb->user_is_caller && inside == PLAN_USER)
                return 0; /* rootless: the caller is id 0 of the supervisor's namespace */
        return sb->uid_base + inside;
}

static int holder_maps(const struct sandbox *sb, pid_t pid, const char *uid_map, const char *gid_map, struct err *err) {
        char path[48];
        int r, fd;

        (void) snprintf(path, sizeof(path), "%d/uid_map", (int) pid);
        r = fd_write_at(sb->proc_fd, path, uid_map);
        if (r == 0) {
                (void) snprintf(path, sizeof(path), "%d/gid_map", (int) pid);
                r = fd_write_at(sb->proc_fd, path, gid_map);
        }
        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "user namespace: writing the map: %s", strerror(-r));
        (void) snprintf(path, sizeof(path), "%d/ns/user", (int) pid);
        fd = openat(sb->proc_fd, path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? err_set(err, -errno, ERR_INTERNAL, "user namespace: %s", strerror(errno)) : fd;
}

static int userns_make(const struct sandbox *sb, struct child *c, const char *uid_map, const char *gid_map,
                       struct err *err) {
        static char stack[HOLDER_STACK] __attribute__((aligned(16)));
        const struct sys_clone_args args = {
                .flags = SYS_CLONE_VM | SYS_CLONE_FILES | SYS_CLONE_NEWUSER,
                .exit_signal = SIGCHLD,
                .stack = (uint64_t) (uintptr_t) stack,
                .stack_size = HOLDER_STACK,
        };
        long pid = sys_clone_run(&args, child_hold, c);
        int fd;

        if (pid < 0)
                return err_set(err, (int) pid, ERR_INTERNAL,
                               "user namespace: %s; sysctl user.max_user_namespaces must not be 0",
                               strerror((int) -pid));
        fd = holder_maps(sb, (pid_t) pid, uid_map, gid_map, err);
        (void) kill((pid_t) pid, SIGKILL);
        (void) waitpid((pid_t) pid, NULL, 0);
        return fd;
}

/* The janitor was born into the sandbox's user namespace. */
int idmap_sandbox(const struct sandbox *sb, const struct child *c, struct err *err) {
        char map[128], wide[32];
        uint32_t base = sb->uid_base;

        if (sb->user_is_caller)
                (void) snprintf(map, sizeof(map), "0 %u %d\n%d 0 1\n%d %u %d\n", base, PLAN_USER, PLAN_USER,
                                PLAN_USER + 1, base + PLAN_USER + 1, PLAN_IDS - PLAN_USER - 2);
        else
                (void) snprintf(map, sizeof(map), "0 %u %d\n", base, PLAN_IDS);
        (void) snprintf(wide, sizeof(wide), "0 0 %d\n", PLAN_IDS);
        return holder_maps(sb, sb->janitor_pid, WEAK(c, WEAKEN_UID_MAP) ? wide : map,
                           WEAK(c, WEAKEN_GID_MAP) ? wide : map, err);
}

int idmap_mounts(const struct sandbox *sb, const struct plan *plan, struct child *c, struct err *err) {
        char uid_map[48], gid_map[48];

        (void) snprintf(uid_map, sizeof(uid_map), "%u %u 1\n", enter_caller_uid(), sandbox_host_uid(sb, plan->uid));
        (void) snprintf(gid_map, sizeof(gid_map), "%u %u 1\n", enter_caller_gid(), sandbox_host_uid(sb, plan->gid));
        return userns_make(sb, c, uid_map, gid_map, err);
}
