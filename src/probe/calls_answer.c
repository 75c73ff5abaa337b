/*
 * calls_answer.c - dangerous calls that need no preparation: one call each, with arguments that the kernel refuses
 * before it does anything. Whoever gets such an answer has reached the code behind the call.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/sysraw.h"
#include "probe/calls.h"

/* Same on both architectures; libc's list may be older than the kernel's. */
enum {
        NR_MEMFD_SECRET = 447,
        NR_FUTEX_WAITV = 449,
        NR_HOME_NODE = 450,
        NR_CACHESTAT = 451,
        NR_SHADOW_STACK = 453,
        NR_STATMOUNT = 457,
        NR_LISTMOUNT = 458,
        NR_LSM_LIST = 461,
        NR_MSEAL = 462,
        NR_QUOTACTL_FD = 443,
};
enum { KEY_SPEC_SESSION = -3, KEYCTL_GET_ID = 0, KEYCTL_JOIN = 1 };
enum { UFFD_USER_MODE_ONLY = 1, FAN_CLOEXEC_REPORT_FID = 0x201 };

CALLS_ANSWER(c01a, SYS2(SYS_io_uring_setup, 1, NULL))
CALLS_ANSWER(c01b, SYS6(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0))
CALLS_ANSWER(c01c, SYS4(SYS_io_uring_register, -1, 0, NULL, 0))

/* The size is checked before the permission, so this answers E2BIG wherever the call gets through. */
CALLS_ANSWER(c02a, SYS3(SYS_bpf, 0, CALLS_BAD, 1 << 20))

void calls_c02b(const struct probe_canaries *c, struct probe_result *r) {
        uint32_t attr[32] = { 2, 4, 4, 1 }; /* an array of one 4-byte value */

        (void) c;
        calls_answer(r, SYS3(SYS_bpf, 0, attr, sizeof(attr)));
}

void calls_c02c(const struct probe_canaries *c, struct probe_result *r) {
        static const uint64_t insns[] = { 0xb7, 0x95 }; /* r0 = 0; exit */
        static const char license[] = "GPL";
        uint64_t attr[16] = { 1 | 2ull << 32, (uintptr_t) insns, (uintptr_t) license }; /* socket filter, 2 long */

        (void) c;
        calls_answer(r, SYS3(SYS_bpf, 5, attr, sizeof(attr)));
}

CALLS_ANSWER(c03a, SYS1(SYS_userfaultfd, UFFD_USER_MODE_ONLY | O_CLOEXEC))

void calls_c03b(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        probe_judge(r, SYS4(SYS_openat, AT_FDCWD, "/dev/userfaultfd", O_RDWR | O_CLOEXEC, 0), "");
}

CALLS_ANSWER(c04a, SYS3(SYS_keyctl, KEYCTL_GET_ID, KEY_SPEC_SESSION, 0))
CALLS_ANSWER(c04b, SYS5(SYS_add_key, CALLS_BAD, CALLS_BAD, NULL, 0, KEY_SPEC_SESSION))
CALLS_ANSWER(c04c, SYS4(SYS_request_key, CALLS_BAD, CALLS_BAD, NULL, 0))
CALLS_ANSWER(c04d, SYS2(SYS_keyctl, KEYCTL_JOIN, NULL))
CALLS_ANSWER(c04e, SYS2(SYS_keyctl, 9999, 0))

CALLS_ANSWER(c07a, SYS5(SYS_perf_event_open, CALLS_BAD, 0, -1, -1, 0))

void calls_c07b(const struct probe_canaries *c, struct probe_result *r) {
        /* PERF_TYPE_SOFTWARE, size of version 0, task clock; flags: disabled, no kernel, no hypervisor */
        uint64_t attr[8] = { 1 | 64ull << 32, 1, 0, 0, 0, 1 | 1 << 5 | 1 << 6 };

        (void) c;
        calls_answer(r, SYS5(SYS_perf_event_open, attr, 0, -1, -1, 8));
}

CALLS_ANSWER(c08a, SYS4(SYS_kexec_load, 0, 1 << 20, NULL, -1))
CALLS_ANSWER(c08b, SYS5(SYS_kexec_file_load, -1, -1, 0, NULL, -1))
CALLS_ANSWER(c09a, SYS3(SYS_init_module, NULL, 0, CALLS_BAD))
CALLS_ANSWER(c09b, SYS3(SYS_finit_module, -1, CALLS_BAD, -1))
CALLS_ANSWER(c09c, SYS2(SYS_delete_module, CALLS_BAD, 0))

CALLS_ANSWER(c22a, SYS4(SYS_reboot, 0, 0, 0, NULL))
CALLS_ANSWER(c22b, SYS2(SYS_swapon, CALLS_BAD, -1))
CALLS_ANSWER(c22c, SYS1(SYS_swapoff, CALLS_BAD))
/* Never NULL here: that would switch accounting off. */
CALLS_ANSWER(c22d, SYS1(SYS_acct, CALLS_BAD))
CALLS_ANSWER(c22e, SYS4(SYS_quotactl, -1, CALLS_BAD, 0, CALLS_BAD))
CALLS_ANSWER(c22f, SYS4(NR_QUOTACTL_FD, -1, -1, 0, CALLS_BAD))

CALLS_ANSWER(c23a, SYS2(SYS_settimeofday, CALLS_BAD, NULL))
CALLS_ANSWER(c23b, SYS2(SYS_clock_settime, 0, CALLS_BAD))
CALLS_ANSWER(c23c, SYS1(SYS_adjtimex, CALLS_BAD))
CALLS_ANSWER(c23d, SYS2(SYS_clock_adjtime, 0, CALLS_BAD))
CALLS_ANSWER(c24a, SYS2(SYS_sethostname, CALLS_BAD, 1))
CALLS_ANSWER(c24b, SYS2(SYS_setdomainname, CALLS_BAD, 1))

CALLS_ANSWER(c25a, SYS3(SYS_syslog, 10, NULL, 0))

void calls_c25b(const struct probe_canaries *c, struct probe_result *r) {
        char text[256];

        (void) c;
        calls_answer(r, SYS3(SYS_syslog, 3, text, sizeof(text)));
        memset(text, 0, sizeof(text));
}

CALLS_ANSWER(c25c, SYS3(SYS_syslog, -1, NULL, 0))
CALLS_ANSWER(c26a, SYS2(SYS_fanotify_init, FAN_CLOEXEC_REPORT_FID, O_CLOEXEC))
CALLS_ANSWER(c26b, SYS5(SYS_fanotify_mark, -1, -1, -1, -1, CALLS_BAD))

CALLS_ANSWER(c27a, SYS6(SYS_move_pages, 0, 0, NULL, NULL, NULL, -1))
CALLS_ANSWER(c27b, SYS4(SYS_migrate_pages, 0, -1, CALLS_BAD, CALLS_BAD))
CALLS_ANSWER(c27c, SYS6(SYS_mbind, 0, 0, -1, NULL, 0, -1))
CALLS_ANSWER(c27d, SYS3(SYS_set_mempolicy, -1, NULL, 0))
CALLS_ANSWER(c27e, SYS5(SYS_get_mempolicy, NULL, NULL, 0, NULL, -1))
CALLS_ANSWER(c27f, SYS4(NR_HOME_NODE, 1, 0, -1, -1))

CALLS_ANSWER(c29a, SYS1(NR_MEMFD_SECRET, O_CLOEXEC))
CALLS_ANSWER(c29b, SYS3(NR_SHADOW_STACK, 1, 0, -1))
CALLS_ANSWER(c29c, SYS3(NR_MSEAL, 1, 1, -1))
CALLS_ANSWER(c29d, SYS4(NR_CACHESTAT, -1, CALLS_BAD, CALLS_BAD, 0))
CALLS_ANSWER(c29e, SYS4(NR_STATMOUNT, CALLS_BAD, CALLS_BAD, 0, -1))
CALLS_ANSWER(c29f, SYS4(NR_LISTMOUNT, CALLS_BAD, CALLS_BAD, 0, -1))
CALLS_ANSWER(c29g, SYS2(SYS_pkey_alloc, -1, -1))
CALLS_ANSWER(c29h, SYS5(SYS_remap_file_pages, 1, 0, -1, 0, 0))
CALLS_ANSWER(c29i, SYS3(NR_LSM_LIST, CALLS_BAD, CALLS_BAD, -1))
CALLS_ANSWER(c29j, SYS5(NR_FUTEX_WAITV, CALLS_BAD, 0, -1, NULL, 0))
CALLS_ANSWER(c29k, SYS4(SYS_mq_open, CALLS_BAD, O_RDONLY, 0, NULL))

#if defined(__x86_64__)
void calls_c35a(const struct probe_canaries *c, struct probe_result *r) {
        char ldt[64];

        (void) c;
        calls_answer(r, SYS3(SYS_modify_ldt, 0, ldt, sizeof(ldt)));
}

CALLS_ANSWER(c35b, SYS1(SYS_iopl, 99))
CALLS_ANSWER(c35c, SYS3(SYS_ioperm, -1, -1, 1))
CALLS_ANSWER(c36a, SYS1(SYS_uselib, CALLS_BAD))
CALLS_ANSWER(c36b, SYS2(SYS_ustat, 0, CALLS_BAD))
CALLS_ANSWER(c36c, SYS1(SYS_sysfs, 3))
#else
CALLS_ABSENT(c35a, "x86 only")
CALLS_ABSENT(c35b, "x86 only")
CALLS_ABSENT(c35c, "x86 only")
CALLS_ABSENT(c36a, "x86 only")
CALLS_ABSENT(c36b, "x86 only")
CALLS_ABSENT(c36c, "x86 only")
#endif
CALLS_ANSWER(c36d, SYS3(SYS_lookup_dcookie, 0, CALLS_BAD, 0))
CALLS_ANSWER(c37a, SYS2(SYS_io_setup, 0, CALLS_BAD))
CALLS_ANSWER(c37b, SYS3(SYS_io_submit, 0, -1, CALLS_BAD))
