/*
 * calls_entry.c - other ways into the kernel than the one the filter was written for: personalities, 32-bit entries,
 * x32 numbers, upper halves of arguments, numbers out of range; and how many numbers answer at all.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "probe/calls.h"

enum { NO_RANDOMIZE = 0x40000, READ_EXEC = 0x400000, LINUX32 = 8, UNAME26 = 0x20000 };
enum { SWEEP_END = 470, FUTURE_END = 1024, X32_BIT = 0x40000000, EXIT_MARK = 42 };

void calls_c15a(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        calls_accept(r, SYS1(SYS_personality, NO_RANDOMIZE), "debuggers and sanitizers; only the caller's own layout");
}

CALLS_SUCCESS(c15b, SYS1(SYS_personality, READ_EXEC))
CALLS_SUCCESS(c15c, SYS1(SYS_personality, LINUX32))
CALLS_SUCCESS(c15d, SYS1(SYS_personality, UNAME26))

#if defined(__x86_64__)
static long int80(long nr, long a, long b) {
        long ret;

        __asm__ volatile("int $0x80"
                         : "=a"(ret)
                         : "a"(nr), "b"(a), "c"(b), "d"(0), "S"(0), "D"(0)
                         : "memory", "r8", "r9", "r10", "r11");
        return (int) ret;
}

/* i386 numbers: 20 getpid, 288 keyctl */
CALLS_ANSWER(c16a, int80(20, 0, 0))
CALLS_ANSWER(c16b, int80(288, 9999, 0))
CALLS_ANSWER(c17a, SYS0(SYS_getpid | X32_BIT))
CALLS_ANSWER(c17b, SYS2(SYS_keyctl | X32_BIT, 9999, 0))
CALLS_ANSWER(c17c, SYS4(521 | X32_BIT, 9999, 0, 0, 0)) /* ptrace has a number of its own there */
#else
CALLS_ABSENT(c16a, "x86 only")
CALLS_ABSENT(c16b, "x86 only")
CALLS_ABSENT(c17a, "x86 only")
CALLS_ABSENT(c17b, "x86 only")
CALLS_ABSENT(c17c, "x86 only")
#endif

/* Each program says exit(EXIT_MARK) and nothing else. */
#if defined(__x86_64__)
static const unsigned char code32[] = { 0xb8, 1, 0, 0, 0, 0xbb, EXIT_MARK, 0, 0, 0, 0xcd, 0x80 };
static const unsigned char code64[] = { 0xb8, 60, 0, 0, 0, 0xbf, EXIT_MARK, 0, 0, 0, 0x0f, 0x05 };
enum { MACHINE32 = EM_386, MACHINE64 = EM_X86_64 };
#else
static const unsigned char code32[] = { EXIT_MARK, 0, 0xa0, 0xe3, 1, 0x70, 0xa0, 0xe3, 0, 0, 0, 0xef };
static const unsigned char code64[] = { 0x40, 5, 0x80, 0xd2, 0xa8, 0x0b, 0x80, 0xd2, 1, 0, 0, 0xd4 };
enum { MACHINE32 = EM_ARM, MACHINE64 = EM_AARCH64 };
#endif

enum { LOAD_AT = 0x400000, ARM_EABI5 = 0x05000000 };

static size_t elf32(unsigned char *to) {
        const size_t at = sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr), n = at + sizeof(code32);
        Elf32_Ehdr e = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT },
                         .e_type = ET_EXEC,
                         .e_machine = MACHINE32,
                         .e_version = 1,
                         .e_entry = LOAD_AT + (Elf32_Addr) at,
                         .e_phoff = sizeof(e),
                         .e_flags = MACHINE32 == EM_ARM ? ARM_EABI5 : 0,
                         .e_ehsize = sizeof(e),
                         .e_phentsize = sizeof(Elf32_Phdr),
                         .e_phnum = 1 };
        Elf32_Phdr p = { .p_type = PT_LOAD,
                         .p_vaddr = LOAD_AT,
                         .p_filesz = (Elf32_Word) n,
                         .p_memsz = (Elf32_Word) n,
                         .p_flags = PF_R | PF_X,
                         .p_align = 0x1000 };

        memcpy(to, &e, sizeof(e));
        memcpy(to + sizeof(e), &p, sizeof(p));
        memcpy(to + at, code32, sizeof(code32));
        return n;
}

static size_t elf64(unsigned char *to) {
        const size_t at = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), n = at + sizeof(code64);
        Elf64_Ehdr e = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
                         .e_type = ET_EXEC,
                         .e_machine = MACHINE64,
                         .e_version = 1,
                         .e_entry = LOAD_AT + at,
                         .e_phoff = sizeof(e),
                         .e_ehsize = sizeof(e),
                         .e_phentsize = sizeof(Elf64_Phdr),
                         .e_phnum = 1 };
        Elf64_Phdr p = { .p_type = PT_LOAD,
                         .p_vaddr = LOAD_AT,
                         .p_filesz = n,
                         .p_memsz = n,
                         .p_flags = PF_R | PF_X,
                         .p_align = 0x1000 };

        memcpy(to, &e, sizeof(e));
        memcpy(to + sizeof(e), &p, sizeof(p));
        memcpy(to + at, code64, sizeof(code64));
        return n;
}

/* Exit status: EXIT_MARK if the program ran, else the errno. */
static int exec_memory(void *arg) {
        size_t (*build)(unsigned char *) = *(size_t(**)(unsigned char *)) arg;
        char *const argv[] = { (char[]){ "x" }, NULL };
        unsigned char image[256];
        long fd = SYS2(SYS_memfd_create, "x", 0);
        size_t n = build(image);

        if (fd < 0)
                return (int) -fd;
        if (sys_write((int) fd, image, n) != (ssize_t) n)
                return EIO;
        return -sys_execveat((int) fd, "", argv, argv + 1, SYS_AT_EMPTY_PATH);
}

static long exec_try(size_t (*build)(unsigned char *)) {
        int status = calls_in_child(exec_memory, &build);

        return status == EXIT_MARK ? 0 : status <= 0 ? -EPERM : -status;
}

CALLS_SUCCESS(c18a, exec_try(elf32))

void calls_c28a(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        calls_accept(r, exec_try(elf64), "a file without a name runs behind the same walls");
}

CALLS_SUCCESS(c19a, SYS1(SYS_personality, CALLS_UPPER | READ_EXEC))
CALLS_ANSWER(c19b, SYS1(SYS_unshare, CALLS_UPPER | SYS_CLONE_NEWUSER))

/* The kernel looks at the lower half of the flags only. */
void calls_c19c(const struct probe_canaries *c, struct probe_result *r) {
        long pid = SYS5(SYS_clone, CALLS_UPPER | SYS_CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

        (void) c;
        if (pid == 0)
                sys_exit(0);
        calls_answer(r, pid);
}

CALLS_SUCCESS(c19d, SYS3(SYS_socket, CALLS_UPPER | 38, 5, 0))                /* AF_ALG, SOCK_SEQPACKET */
CALLS_SUCCESS(c19e, SYS3(SYS_socket, CALLS_UPPER | 16, 3, CALLS_UPPER | 12)) /* AF_NETLINK, SOCK_RAW, netfilter */
CALLS_SUCCESS(c19f, SYS5(SYS_prctl, CALLS_UPPER | 33, 0, 0, 0, 0))           /* PR_MCE_KILL, clear */
CALLS_ANSWER(c19g, SYS2(CALLS_UPPER | SYS_keyctl, 9999, 0))

CALLS_ANSWER(c21a, SYS0(-1l))
CALLS_ANSWER(c21b, SYS0(0x7fffffffl))
CALLS_ANSWER(c21c, SYS0(-2147483648l))

static bool is_refusal(long ret) {
        return ret == -ENOSYS || ret == -EPERM;
}

/* Numbers that no kernel of today has: an allowlist refuses them, a denylist lets them in when they come. */
void calls_c21d(const struct probe_canaries *c, struct probe_result *r) {
        char note[64];
        unsigned n = 0;

        (void) c;
        for (long nr = SWEEP_END; nr < FUTURE_END; nr++)
                n += SYS6(nr, -1, -1, -1, -1, -1, -1) != -ENOSYS;
        (void) snprintf(note, sizeof(note), "%u of %d numbers above the table answered", n, FUTURE_END - SWEEP_END);
        if (n)
                probe_reached(r, note);
        else
                probe_stopped(r, ENOSYS, note);
}

/* What would end, stop, double or signal the process, flush every disk, or answer with a signal. */
static bool is_left_out(long nr) {
        static const short out[] = {
                SYS_exit,
                SYS_exit_group,
                SYS_clone,
                SYS_clone3,
                SYS_kill,
                SYS_msgget, /* these three would leave an object behind */
                SYS_semget,
                SYS_shmget,
                SYS_tkill,
                SYS_tgkill,
                SYS_rt_sigqueueinfo,
                SYS_rt_tgsigqueueinfo,
                SYS_pidfd_send_signal,
                SYS_rt_sigreturn,
                SYS_rt_sigsuspend,
                SYS_sync,
                SYS_vhangup,
                SYS_setpriority,
                SYS_ioprio_set,
                SYS_restart_syscall,
#if defined(__x86_64__)
                SYS_fork,
                SYS_vfork,
                SYS_pause,
                SYS_alarm,
                335,
                336,
#endif
        };

        for (size_t i = 0; i < ARRAY_SIZE(out); i++)
                if (out[i] == nr)
                        return true;
        return false;
}

struct sweep {
        int at, tried, answered;
};

static int sweep_run(void *arg) {
        struct sweep *s = arg;

        for (; s->at < SWEEP_END; s->at++)
                if (!is_left_out(s->at)) {
                        s->tried++;
                        s->answered += !is_refusal(SYS6(s->at, -1, -1, -1, -1, -1, -1));
                }
        return 0;
}

/* Counted in shared memory and in a child, so that a number that kills still leaves a count. */
void calls_c38a(const struct probe_canaries *c, struct probe_result *r) {
        struct sweep *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        char note[80];

        (void) c;
        if (s == MAP_FAILED) {
                probe_absent(r, "no shared memory");
                return;
        }
        for (; s->at < SWEEP_END; s->at++)
                if (calls_in_child(sweep_run, s) == 0)
                        break;
        (void) snprintf(note, sizeof(note), "%d of %d numbers answer something else than ENOSYS or EPERM", s->answered,
                        s->tried);
        probe_reached(r, note);
        r->verdict = PROBE_ACCEPTED;
}
