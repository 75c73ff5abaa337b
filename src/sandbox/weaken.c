/* weaken.c - names of the test hook; linked into the twin binary only. */
#include "base/str.h"
#include "sandbox/sandbox.h"

enum sandbox_weaken sandbox_weaken_parse(const char *name) {
        static const char *const names[WEAKEN_COUNT] = {
                [WEAKEN_NONE] = "none",
                [WEAKEN_NET] = "net",
                [WEAKEN_IPC] = "ipc",
                [WEAKEN_UTS] = "uts",
                [WEAKEN_CGROUP_NS] = "cgroup-ns",
                [WEAKEN_TIME] = "time",
                [WEAKEN_PID] = "pid-ns",
                [WEAKEN_UID_MAP] = "uid-map",
                [WEAKEN_GID_MAP] = "gid-map",
                [WEAKEN_ROOT_RW] = "root-rw",
                [WEAKEN_USR_RW] = "usr-rw",
                [WEAKEN_SHARED] = "shared",
                [WEAKEN_MASK] = "mask",
                [WEAKEN_EXTRA_MOUNT] = "extra-mount",
                [WEAKEN_MEMORY] = "memory",
                [WEAKEN_PIDS] = "pids",
                [WEAKEN_CPU] = "cpu",
                [WEAKEN_IO] = "io",
                [WEAKEN_TASKS] = "tasks",
                [WEAKEN_CAPS] = "caps",
                [WEAKEN_NNP] = "nnp",
                [WEAKEN_SECCOMP] = "seccomp",
                [WEAKEN_SECCOMP_OTHER] = "seccomp-other",
                [WEAKEN_LANDLOCK] = "landlock",
                [WEAKEN_SCOPE] = "scope",
                [WEAKEN_SECUREBITS] = "securebits",
                [WEAKEN_RLIMIT] = "rlimit",
                [WEAKEN_IDS] = "ids",
                [WEAKEN_FDS] = "fds",
                [WEAKEN_AGENT_ENV] = "agent-env",
                [WEAKEN_AGENT_CAPS] = "agent-caps",
                [WEAKEN_OOM_SCORE] = "oom-score",
                [WEAKEN_TMPFS_SIZE] = "tmpfs-size",
                [WEAKEN_TERMINALS] = "terminals",
                [WEAKEN_WALL] = "user-namespaces",
        };

        for (unsigned i = 0; i < WEAKEN_COUNT; i++)
                if (str_eq(names[i], name))
                        return (enum sandbox_weaken) i;
        return WEAKEN_NONE;
}
