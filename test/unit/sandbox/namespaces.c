/* namespaces.c - see namespaces.h. */
#include "namespaces.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/sys.h"

void namespaces_needed(void) {
        if (geteuid() == 0)
                return;
        (void) printf("needs root\n");
        skip();
}

/* Root of the new namespace, and nobody in the one that owns the host's network. */
static bool become_rootless(void) {
        return sys_unshare(SYS_CLONE_NEWUSER) == 0 && fd_write_at(AT_FDCWD, "/proc/self/uid_map", "0 0 1") == 0 &&
               fd_write_at(AT_FDCWD, "/proc/self/setgroups", "deny") == 0 &&
               fd_write_at(AT_FDCWD, "/proc/self/gid_map", "0 0 1") == 0;
}

bool namespaces_try(bool rootless, bool (*fn)(void *arg), void *arg) {
        int status = -1;
        pid_t pid;

        (void) fflush(stdout);
        pid = fork();
        if (pid == 0) {
                bool ok = (!rootless || become_rootless()) && fn(arg);

                (void) fflush(stdout); /* what it says is lost otherwise */
                _exit(ok ? 0 : 1);
        }
        return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
