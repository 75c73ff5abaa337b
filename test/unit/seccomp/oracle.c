/* oracle.c - see oracle.h. */
#include "oracle.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/sysraw.h"
#include "model.h"

enum { SAID_ALLOW = 1234, SAID_NOTIFY, SAID_KILL, PROGRAM_MAX = 4096 };

static void disarm(struct sys_bpf_insn *dst, const struct sys_bpf_insn *src, size_t n) {
        for (size_t i = 0; i < n; i++) {
                dst[i] = src[i];
                if (src[i].code != 0x06)
                        continue;
                if (src[i].k == MODEL_ALLOW)
                        dst[i].k = MODEL_ERRNO | SAID_ALLOW;
                else if (src[i].k == MODEL_NOTIFY)
                        dst[i].k = MODEL_ERRNO | SAID_NOTIFY;
                else if (src[i].k == MODEL_KILL)
                        dst[i].k = MODEL_ERRNO | SAID_KILL;
                else if ((src[i].k & 0xffff0000) != MODEL_ERRNO)
                        abort();
        }
}

static uint32_t meaning(long answer) {
        if (answer == -SAID_ALLOW)
                return MODEL_ALLOW;
        if (answer == -SAID_NOTIFY)
                return MODEL_NOTIFY;
        if (answer == -SAID_KILL)
                return MODEL_KILL;
        return MODEL_ERRNO | (uint32_t) -answer;
}

/* Newer kernels let their own probe trampolines past every filter, and kill whoever calls these by hand. */
static bool is_past_filters(int32_t nr) {
#if defined(__x86_64__)
        return nr == 335 || nr == 336;
#else
        (void) nr;
        return false;
#endif
}

static _Noreturn void child(const struct sys_bpf_insn *insns, size_t n, const struct sim_data *v, size_t n_v,
                            long *answers) {
        static const struct rlimit no_core = { 0, 0 };
        int r;

        (void) setrlimit(RLIMIT_CORE, &no_core);
        (void) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        r = sys_seccomp_filter(insns, (unsigned short) n, 0);
        if (r < 0)
                _exit(-r);
        for (size_t i = 0; i < n_v; i++) {
                const uint64_t *a = v[i].args;

                if (is_past_filters(v[i].nr))
                        continue;
                answers[i] =
                        sys_raw(v[i].nr, (long) a[0], (long) a[1], (long) a[2], (long) a[3], (long) a[4], (long) a[5]);
        }
        answers[n_v] = 1;
        __builtin_trap();
}

int oracle_ask(const struct sys_bpf_insn *insns, size_t n, const struct sim_data *v, size_t n_v, uint32_t *ret) {
        static struct sys_bpf_insn harmless[PROGRAM_MAX];
        size_t size = (n_v + 1) * sizeof(long);
        long *answers = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        int status = 0, r = -EIO;
        pid_t pid;

        if (answers == MAP_FAILED || n > PROGRAM_MAX)
                return -ENOMEM;
        disarm(harmless, insns, n);
        pid = fork();
        if (pid == 0)
                child(harmless, n, v, n_v, answers);
        if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status))
                r = -WEXITSTATUS(status);
        else if (pid > 0 && answers[n_v] == 1)
                r = 0;
        for (size_t i = 0; r == 0 && i < n_v; i++)
                ret[i] = is_past_filters(v[i].nr) ? MODEL_ALLOW : meaning(answers[i]);
        (void) munmap(answers, size);
        return r;
}
