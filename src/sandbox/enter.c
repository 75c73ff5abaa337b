/*
 * enter.c - root stays where it is; an ordinary user moves into a user namespace of its own.
 *
 * Rootless, the supervisor becomes id 0 of a namespace U that maps 0 to the caller and 1..65536 to the caller's
 * subordinate ids, and owns a mount namespace there. From then on the same code runs as for root: U's root owns
 * the sandbox's namespaces, and the sandbox's own user namespace lies below U. The maps are written by newuidmap and
 * newgidmap, which check /etc/subuid and /etc/subgid; they must run outside U, so a helper is forked first.
 */
#include "sandbox/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "sandbox/child.h"

static struct {
        uint32_t uid, gid;
        uint64_t sub_uids; /* first subordinate id */
        bool rootless;
} caller;

uint32_t enter_caller_uid(void) {
        return caller.uid;
}

uint32_t enter_caller_gid(void) {
        return caller.gid;
}

uint64_t sandbox_real_uid(uint64_t id) {
        if (!caller.rootless)
                return id;
        return id == 0 ? caller.uid : caller.sub_uids + id - 1;
}

bool enter_is_rootless(void) {
        return caller.rootless;
}

/* The login name of a uid, from the text of /etc/passwd. Bounded reading; "" when there is none. */
static void login_name(uint32_t uid, char *dst, size_t cap) {
        static char text[256 * 1024];
        char want[16];

        dst[0] = '\0';
        (void) snprintf(want, sizeof(want), "%u", uid);
        if (fd_read_at(AT_FDCWD, "/etc/passwd", text, sizeof(text)) < 0)
                return;
        for (char *line = text, *next; line && *line; line = next) {
                char *pass, *id, *end;

                next = strchr(line, '\n');
                if (next)
                        *next++ = '\0';
                pass = strchr(line, ':');
                id = pass ? strchr(pass + 1, ':') : NULL;
                end = id ? strchr(id + 1, ':') : NULL;
                if (!end)
                        continue;
                *pass = *end = '\0';
                if (str_eq(id + 1, want) && str_copy(dst, cap, line) == 0)
                        return;
        }
}

/* First range of at least PLAN_IDS ids for a user in /etc/subuid or /etc/subgid: NAME:FIRST:COUNT. *free_from is raised
 * above everybody's ranges. */
static int sub_range(const char *file, const char *name, uint32_t id, uint64_t *ret_first, uint64_t *free_from) {
        static char text[256 * 1024];
        char number[16];

        (void) snprintf(number, sizeof(number), "%u", id);
        if (fd_read_at(AT_FDCWD, file, text, sizeof(text)) < 0)
                return -ENOENT;
        for (char *line = text, *next; line && *line; line = next) {
                char *first, *count;
                uint64_t from, n;

                next = strchr(line, '\n');
                if (next)
                        *next++ = '\0';
                first = strchr(line, ':');
                count = first ? strchr(first + 1, ':') : NULL;
                if (!count)
                        continue;
                *first++ = *count++ = '\0';
                if (str_to_u64(first, UINT32_MAX, &from) < 0 || str_to_u64(count, UINT32_MAX, &n) < 0)
                        continue;
                if (from + n > *free_from)
                        *free_from = from + n;
                if ((str_eq(line, name) || str_eq(line, number)) && n >= PLAN_IDS) {
                        *ret_first = from;
                        return 0;
                }
        }
        return -ENOENT;
}

/* Runs `program PID 0 SELF 1 1 FIRST COUNT` and waits. */
static int run_mapper(const char *program, pid_t target, uint32_t self, uint64_t first) {
        char pid[16], own[16], from[24], count[16];
        char *const argv[] = {
                (char *) program, pid, (char *) "0", own, (char *) "1", (char *) "1", from, count, NULL
        };
        char *const envp[] = { (char *) "PATH=/usr/bin:/bin", NULL };
        pid_t child;
        int status;

        (void) snprintf(pid, sizeof(pid), "%d", (int) target);
        (void) snprintf(own, sizeof(own), "%u", self);
        (void) snprintf(from, sizeof(from), "%llu", (unsigned long long) first);
        (void) snprintf(count, sizeof(count), "%d", PLAN_IDS);
        child = fork();
        if (child == 0) {
                (void) execve(program, argv, envp);
                _exit(127);
        }
        if (child < 0 || waitpid(child, &status, 0) < 0)
                return -errno;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

/* Waits for a byte on in_fd, then writes the maps of `target`; its exit status is the answer. */
static _Noreturn void helper(int in_fd, pid_t target, uint64_t uids, uint64_t gids) {
        char byte;

        if (read(in_fd, &byte, 1) != 1)
                _exit(1);
        if (run_mapper("/usr/bin/newuidmap", target, caller.uid, uids) < 0)
                _exit(2);
        _exit(run_mapper("/usr/bin/newgidmap", target, caller.gid, gids) < 0 ? 3 : 0);
}

static int enter_rootless(struct err *err) {
        char name[64];
        uint64_t uids, gids, next = 100000;
        int pipe_fds[2], status = -1, r;
        pid_t pid;

        login_name(caller.uid, name, sizeof(name));
        if (access("/usr/bin/newuidmap", X_OK) < 0 || access("/usr/bin/newgidmap", X_OK) < 0)
                return err_set(err, -ENOENT, ERR_DENIED, "rootless: newuidmap is missing; apt-get install uidmap");
        if (sub_range("/etc/subuid", name, caller.uid, &uids, &next) < 0 ||
            sub_range("/etc/subgid", name, caller.gid, &gids, &next) < 0)
                return err_set(err, -ENOENT, ERR_DENIED,
                               "rootless: no %d subordinate ids; run as root: usermod --add-subuids %llu-%llu "
                               "--add-subgids %llu-%llu %s",
                               PLAN_IDS, (unsigned long long) next, (unsigned long long) next + PLAN_IDS - 1,
                               (unsigned long long) next, (unsigned long long) next + PLAN_IDS - 1,
                               name[0] ? name : "USER");
        caller.sub_uids = uids;
        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "rootless: pipe: %s", strerror(errno));
        pid = fork();
        if (pid == 0) {
                (void) close(pipe_fds[1]);
                helper(pipe_fds[0], getppid(), uids, gids);
        }
        (void) close(pipe_fds[0]);
        r = pid < 0 ? -errno : sys_unshare(SYS_CLONE_NEWUSER | SYS_CLONE_NEWNS);
        if (r == 0)
                r = fd_write_all(pipe_fds[1], "m", 1);
        (void) close(pipe_fds[1]);
        if (pid > 0 && waitpid(pid, &status, 0) < 0)
                r = -errno;
        if (r < 0)
                return err_set(err, r, ERR_DENIED,
                               "rootless: user namespaces: %s; sysctl kernel.unprivileged_userns_clone=1, "
                               "user.max_user_namespaces>0, kernel.apparmor_restrict_unprivileged_userns=0",
                               strerror(-r));
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                return err_set(err, -EPERM, ERR_DENIED,
                               "rootless: %s refused the map; check /etc/subuid and /etc/subgid",
                               WIFEXITED(status) && WEXITSTATUS(status) == 2 ? "newuidmap" : "newgidmap");
        r = sys_setresgid(0);
        if (r == 0)
                r = sys_setresuid(0);
        if (r == 0) /* a change of ids makes us undumpable, and our own /proc files root's */
                r = sys_prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "rootless: becoming id 0: %s", strerror(-r)) : 0;
}

int enter_reserve(struct err *err) {
        int fd = open("/", O_PATH | O_CLOEXEC);

        if (fd < 0)
                return err_set(err, -errno, ERR_INTERNAL, "reserving descriptors: %s", strerror(errno));
        for (int at = AP_FD_CONTROL; at <= CHILD_FD_AGENT; at++)
                if (fd != at && dup3(fd, at, O_CLOEXEC) < 0)
                        return err_set(err, -errno, ERR_INTERNAL, "reserving descriptors: %s", strerror(errno));
        if (fd > CHILD_FD_AGENT)
                (void) close(fd);
        return 0;
}

int sandbox_enter(bool *ret_rootless, struct err *err) {
        int r = enter_reserve(err);

        caller.uid = geteuid();
        caller.gid = getegid();
        caller.rootless = caller.uid != 0;
        if (r == 0 && caller.rootless)
                r = enter_rootless(err);
        *ret_rootless = caller.rootless;
        return r;
}

int sandbox_facts(struct plan_facts *ret, struct err *err) {
        static const char *const names[] = { "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32" };
        enum { ALWAYS = 4 }; /* the rest exist on some machines only */
        size_t dirs = 0;
        char to[16];

        memset(ret, 0, sizeof(*ret));
        ret->rootless = caller.rootless;
        ret->caller_uid = caller.uid;
        ret->landlock_abi = sys_landlock_create(NULL, 0);
        if (ret->landlock_abi < 0)
                ret->landlock_abi = 0;
        ret->has_bundle = access(PLAN_BUNDLE, R_OK) == 0;
        ret->has_java_bundle = access(PLAN_JAVA_BUNDLE, F_OK) == 0;
        if (readlink("/bin", to, sizeof(to)) > 0) { /* merged: a link that leads nowhere harms nobody */
                memcpy(ret->usr_links, names, sizeof(names));
                return 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (access(names[i], F_OK) == 0)
                        ret->usr_dirs[dirs++] = names[i];
        return dirs >= ALWAYS - 1 ? 0 : err_set(err, -ENOENT, ERR_INTERNAL, "template host: no /bin on this machine");
}
