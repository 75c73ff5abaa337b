/*
 * dangerous.c - the calls whose reach is counted, and the attempts that try each.
 *
 * A call has reached the kernel when one of its attempts says so: the kernel's own code answered, be it with success or
 * with EFAULT, EBADF or EINVAL. EPERM, ENOSYS and EACCES are refusals; from inside nobody can tell the filter's from
 * the kernel's own, so a sandbox that has only the latter is counted too well, never too badly.
 */
#include "prove/dangerous.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/sysraw.h"

/* Numbers from 424 on are the same everywhere; libc's headers do not have the newest, and musl has fewer. */
#ifdef __x86_64__
#define X86(nr) nr
#else
#define X86(nr) -1
#endif
enum { NOBODY = 65534, NONE = -1 };

static const struct call {
        const char *name, *attempts; /* ids, separated by blanks */
        int nr;
} calls[] = {
        { "io_uring_setup", "C01a", 425 },
        { "io_uring_enter", "C01b", 426 },
        { "io_uring_register", "C01c", 427 },
        { "bpf", "C02a C02b C02c", SYS_bpf },
        { "userfaultfd", "C03a", SYS_userfaultfd },
        { "keyctl", "C04a C04d C04e", SYS_keyctl },
        { "add_key", "C04b", SYS_add_key },
        { "request_key", "C04c", SYS_request_key },
        { "ptrace", "C05a C05b", SYS_ptrace },
        { "process_vm_readv", "C06a", SYS_process_vm_readv },
        { "process_vm_writev", "C06b", SYS_process_vm_writev },
        { "pidfd_getfd", "C06c", 438 },
        { "kcmp", "C06d", SYS_kcmp },
        { "process_madvise", "C06e", 440 },
        { "process_mrelease", "C06f", 448 },
        { "perf_event_open", "C07a C07b", SYS_perf_event_open },
        { "kexec_load", "C08a", SYS_kexec_load },
        { "kexec_file_load", "C08b", SYS_kexec_file_load },
        { "init_module", "C09a", SYS_init_module },
        { "finit_module", "C09b", SYS_finit_module },
        { "delete_module", "C09c", SYS_delete_module },
        { "name_to_handle_at", "C10a", SYS_name_to_handle_at },
        { "open_by_handle_at", "C10b C10c", SYS_open_by_handle_at },
        { "mount", "C11a C11b C11c C11d C11e C11f C11g", SYS_mount },
        { "umount2", "C11h C13a C13b C13c", SYS_umount2 },
        { "fsopen", "C12a", 430 },
        { "fsconfig", "C12b", 431 },
        { "fsmount", "C12c", 432 },
        { "fspick", "C12d", 433 },
        { "open_tree", "C12e C12f", 428 },
        { "move_mount", "C12g", 429 },
        { "mount_setattr", "C12h", 442 },
        { "open_tree_attr", "C12i", 467 },
        { "pivot_root", "C14a", SYS_pivot_root },
        { "chroot", "C14b C14c C14d", SYS_chroot },
        { "unshare (new namespaces)", "B01a B01b B05a B05b B05c B05d B05e B05f B05g", SYS_unshare },
        { "clone (new namespaces)", "B02a B02b B05h B05i", SYS_clone },
        { "clone3", "B03a B03b B03c", 435 },
        { "setns", "B08a B08b B09", SYS_setns },
        { "reboot", "C22a", SYS_reboot },
        { "swapon", "C22b", SYS_swapon },
        { "swapoff", "C22c", SYS_swapoff },
        { "acct", "C22d", SYS_acct },
        { "quotactl", "C22e", SYS_quotactl },
        { "quotactl_fd", "C22f", 443 },
        { "settimeofday", "C23a", SYS_settimeofday },
        { "clock_settime", "C23b", SYS_clock_settime },
        { "adjtimex", "C23c", SYS_adjtimex },
        { "clock_adjtime", "C23d", SYS_clock_adjtime },
        { "sethostname", "C24a", SYS_sethostname },
        { "setdomainname", "C24b", SYS_setdomainname },
        { "syslog", "C25a C25b C25c", SYS_syslog },
        { "fanotify_init", "C26a", SYS_fanotify_init },
        { "fanotify_mark", "C26b", SYS_fanotify_mark },
        { "move_pages", "C27a", SYS_move_pages },
        { "migrate_pages", "C27b", SYS_migrate_pages },
        { "mbind", "C27c", SYS_mbind },
        { "set_mempolicy", "C27d", SYS_set_mempolicy },
        { "get_mempolicy", "C27e", SYS_get_mempolicy },
        { "set_mempolicy_home_node", "C27f", 450 },
        { "memfd_secret", "C29a", 447 },
        { "map_shadow_stack", "C29b", 453 },
        { "statmount", "C29e", 457 },
        { "listmount", "C29f", 458 },
        { "remap_file_pages", "C29h", SYS_remap_file_pages },
        { "lsm_list_modules", "C29i", 461 },
        { "mq_open", "C29k", SYS_mq_open },
        { "vmsplice", "C33a", SYS_vmsplice },
        { "modify_ldt", "C35a", X86(154) },
        { "iopl", "C35b", X86(172) },
        { "ioperm", "C35c", X86(173) },
        { "uselib", "C36a", X86(134) },
        { "ustat", "C36b", X86(136) },
        { "sysfs", "C36c", X86(139) },
        { "lookup_dcookie", "C36d", SYS_lookup_dcookie },
        { "io_setup", "C37a", SYS_io_setup },
        { "io_submit", "C37b", SYS_io_submit },
        { "vhangup", "C43a", SYS_vhangup },
};
_Static_assert(ARRAY_SIZE(calls) <= PROVE_DANGEROUS, "PROVE_DANGEROUS is too small");

/*
 * Every argument is -1: no call takes that for anything but an error. clone() would, so it is taken as there. Nobody's
 * process, in case.
 */
static _Noreturn void ask(uint8_t *ret) {
        if (geteuid() == 0 && (sys_setgroups_none() < 0 || sys_setresgid(NOBODY) < 0 || sys_setresuid(NOBODY) < 0))
                _exit(1);
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
                if (calls[i].nr != NONE && calls[i].nr != SYS_clone)
                        ret[i] = sys_raw(calls[i].nr, -1, -1, -1, -1, -1, -1) != -ENOSYS;
        _exit(0);
}

void dangerous_exist(uint8_t ret[PROVE_DANGEROUS]) {
        uint8_t *shared = mmap(NULL, PROVE_DANGEROUS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pid_t pid;

        if (shared == MAP_FAILED)
                return;
        memset(shared, 1,
               PROVE_DANGEROUS); /* what we cannot ask, because we are filtered ourselves, is taken as there */
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
                shared[i] = calls[i].nr != NONE;
        pid = fork();
        if (pid == 0)
                ask(shared);
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        memcpy(ret, shared, PROVE_DANGEROUS);
        (void) munmap(shared, PROVE_DANGEROUS);
}

static bool names_attempt(const char *attempts, const char *id) {
        size_t n = strlen(id);

        for (const char *at = strstr(attempts, id); at; at = strstr(at + 1, id))
                if ((at == attempts || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
                        return true;
        return false;
}

void prove_dangerous(const struct prove_report *r, struct prove_dangerous *ret) {
        *ret = (struct prove_dangerous){ .known = ARRAY_SIZE(calls) };
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
                bool tried = false, reached = false;

                for (size_t k = 0; r->call_exists[i] && k < r->n_attempts; k++) {
                        bool of_it = names_attempt(calls[i].attempts, r->attempts[k].id);

                        tried |= of_it;
                        reached |= of_it && (r->attempts[k].verdict == PROVE_REACHED ||
                                             r->attempts[k].verdict == PROVE_ACCEPTED);
                }
                ret->exist += r->call_exists[i];
                ret->tried += tried;
                if (reached)
                        ret->reached[ret->n_reached++] = calls[i].name;
        }
}
