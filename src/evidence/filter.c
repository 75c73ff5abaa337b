/*
 * filter.c - the seccomp program of the waiting command, read back from the kernel instruction by instruction.
 *
 * Needs the initial user namespace's root and a supervisor that is under no filter itself. Where that is not so the
 * fact is "unavailable", said so in the evidence; mode and number of filters are checked in every case.
 */
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "evidence/read.h"

enum { FILTER_MAX = 4096, OP_SEIZE = 0x4206, OP_INTERRUPT = 0x4207, OP_GET_FILTER = 0x420c, OP_DETACH = 17 };

/* Asks the command to stop, which takes a moment: other things are read meanwhile. */
long filter_ask(const struct sandbox *sb) {
        long r = sys_ptrace(OP_SEIZE, sb->command_pid, 0, 0);

        return r < 0 ? r : sys_ptrace(OP_INTERRUPT, sb->command_pid, 0, 0);
}

/* Whoever asked must come here, or the command could not even be killed. */
static long program_get(pid_t pid, struct sys_bpf_insn *insns) {
        long r = 0;
        int status;

        while (r == 0 && waitpid(pid, &status, __WALL) < 0)
                if (errno != EINTR)
                        r = -errno;
        if (r == 0)
                r = sys_ptrace(OP_GET_FILTER, pid, 0, 0); /* length first */
        if (r > FILTER_MAX)
                r = -E2BIG;
        if (r > 0)
                r = sys_ptrace(OP_GET_FILTER, pid, 0, (unsigned long) (uintptr_t) insns);
        (void) sys_ptrace(OP_DETACH, pid, 0, 0);
        return r;
}

int filter_read(const struct reader *rd, long asked, struct err *err) {
        static struct sys_bpf_insn insns[FILTER_MAX];
        struct seccomp_program want;
        long n = asked;

        seccomp_program(rd->plan->profile, &want);
        if (rd->filter_hash && !str_eq(rd->filter_hash, want.hash))
                return read_mismatch(err, "seccomp", "the loaded filter is another one");
        if (rd->filter_hash) {
                (void) memcpy(rd->ev->filter_hash, want.hash, HASH_TEXT);
                return 0;
        }
        if (n >= 0)
                n = program_get(rd->sb->command_pid, insns);
        if (n == -EACCES || n == -EPERM || n == -EIO || n == -EINVAL) {
                rd->ev->filter_hash[0] = '\0';
                rd->ev->filter_note = "the kernel shows it to host root only";
                return 0;
        }
        if (n < 0)
                return read_mismatch(err, "seccomp", "the filter cannot be read: %s", strerror((int) -n));
        if (n != want.n || memcmp(insns, want.insns, (size_t) n * sizeof(insns[0])) != 0)
                return read_mismatch(err, "seccomp", "the loaded filter is another one");
        (void) memcpy(rd->ev->filter_hash, want.hash, HASH_TEXT);
        return 0;
}

int evidence_read_filter(const struct plan *plan, const struct sandbox *sb, struct evidence *ret, struct err *err) {
        const struct reader rd = { .plan = plan, .sb = sb, .ev = ret };

        return filter_read(&rd, filter_ask(sb), err);
}
