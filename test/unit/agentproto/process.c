/* process.c - see process.h. */
#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agentproto/agentproto.h"
#include "base/fd.h"
#include "base/str.h"

enum { HIGH = 30 };

static const char *agent_file;

void process_use(const char *agent) {
        agent_file = agent;
        /* Without a pid namespace commands outlive their agent: they become ours. */
        (void) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* Emptying the bounding set needs a capability; an ordinary user has it in a user namespace of his own. */
static int become_root(void) {
        char uids[32], gids[32];

        (void) snprintf(uids, sizeof(uids), "0 %u 1", (unsigned) geteuid());
        (void) snprintf(gids, sizeof(gids), "0 %u 1", (unsigned) getegid());
        if (unshare(CLONE_NEWUSER) < 0 || fd_write_at(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 ||
            fd_write_at(AT_FDCWD, "/proc/self/uid_map", uids) < 0)
                return -1;
        return fd_write_at(AT_FDCWD, "/proc/self/gid_map", gids);
}

void process_exec(int control, int gate, int landlock) {
        static char *const argv[] = { (char *) "gabion-agent", NULL };
        int high[3] = { fcntl(control, F_DUPFD, HIGH), fcntl(gate, F_DUPFD, HIGH),
                        landlock < 0 ? open("/dev/null", O_RDONLY) : fcntl(landlock, F_DUPFD, HIGH) };

        if (geteuid() != 0 && become_root() < 0)
                _exit(PROCESS_NOT_ROOT);
        for (int i = 0; i < 3; i++)
                if (dup2(high[i], AP_FD_CONTROL + i) < 0)
                        _exit(98);
        (void) close_range(6, ~0u, 0);
        (void) close_range(0, 2, 0);
        (void) execve(agent_file, argv, argv + 1);
        _exit(97);
}

void process_end_orphans(void) {
        char path[64], text[4096];
        int n = 1;

        (void) snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int) getpid());
        while (n > 0) {
                char *at = text;
                uint64_t pid;

                n = fd_read_at(AT_FDCWD, path, text, sizeof(text));
                for (char *end; n > 0 && (end = strchr(at, ' ')); at = end + 1) {
                        *end = '\0';
                        if (str_to_u64(at, INT32_MAX, &pid) == 0 && kill((pid_t) pid, SIGKILL) == 0)
                                (void) waitpid((pid_t) pid, NULL, 0);
                }
        }
}

void process_send(int fd, const void *p, size_t n) {
        while (n > 0) {
                ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

                assert_true(k > 0);
                p = (const char *) p + k;
                n -= (size_t) k;
        }
}

void process_await(int fd, const char *what) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        if (poll(&p, 1, PROCESS_MS) != 1)
                fail_msg("nothing came over the %s", what);
}
