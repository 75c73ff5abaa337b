/*
 * test_notify.c - the real programs in the running kernel: a child loads one, sends its listener here as the sandbox's
 * set-up child does, and tries things; this process answers.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "base/sys.h"
#include "base/sysraw.h"
#include "seccomp/seccomp.h"

enum { WAIT_MS = 10000, MAX_TRIES = 16 };

/* Answers of the child, before and after its listener was closed. */
struct answers {
        long listened[MAX_TRIES], closed[MAX_TRIES];
        pid_t grandchild;
};

static const struct attempt {
        const char *text; /* NULL: refused without a report */
        long nr, args[5];
        int agent, strict, without; /* errno in either profile, and without a listener */
} attempts[] = {
        { "mount", SYS_mount, { 0 }, EPERM, EPERM, ENOSYS },
        { "unshare(CLONE_NEWUSER)", SYS_unshare, { SYS_CLONE_NEWUSER }, EPERM, EPERM, ENOSYS },
        { "clone(CLONE_NEWPID)", SYS_clone, { SYS_CLONE_NEWPID | SIGCHLD }, EPERM, EPERM, ENOSYS },
        { "socket(AF_PACKET)", SYS_socket, { AF_PACKET, SOCK_RAW, 0 }, EAFNOSUPPORT, EAFNOSUPPORT, ENOSYS },
        { "socket(AF_INET, SOCK_RAW)", SYS_socket, { AF_INET, SOCK_RAW, 1 }, EPERM, EAFNOSUPPORT, ENOSYS },
        { "bpf(BPF_PROG_LOAD)", SYS_bpf, { 5, 0, 0 }, EPERM, EPERM, ENOSYS },
        { "keyctl(KEYCTL_GET_KEYRING_ID)", SYS_keyctl, { 0, -3, 0 }, ENOSYS, ENOSYS, ENOSYS },
        { "io_uring_setup", SYS_io_uring_setup, { 1, 0 }, ENOSYS, ENOSYS, ENOSYS },
        { "open_by_handle_at", SYS_open_by_handle_at, { 0 }, EPERM, EPERM, ENOSYS },
        { NULL, SYS_clone3, { 0 }, ENOSYS, ENOSYS, ENOSYS },
        { NULL, SYS_ioctl, { 0, 0x5412, 0 }, ENOTTY, ENOTTY, ENOTTY }, /* TIOCSTI */
        { NULL, SYS_prctl, { 35, 1, 0 }, EINVAL, EINVAL, EINVAL },     /* PR_SET_MM */
};

static struct answers *shared;

static int load(enum seccomp_profile profile, unsigned flags) {
        static const struct rlimit no_core = { 0, 0 };
        struct seccomp_program p;

        seccomp_program(profile, &p);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* a failed test must leave nobody waiting */
        (void) setrlimit(RLIMIT_CORE, &no_core);
        (void) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        return sys_seccomp_filter(p.insns, p.n, flags);
}

static int send_fd(int sock, int fd) {
        union {
                char room[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control = { .room = { 0 } };
        struct iovec iov = { "", 1 };
        struct msghdr msg = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        return sendmsg(sock, &msg, 0) == 1 ? 0 : -errno;
}

static int receive_fd(int sock) {
        union {
                char room[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control = { .room = { 0 } };
        char byte;
        struct iovec iov = { &byte, 1 };
        struct msghdr msg = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        struct cmsghdr *c;
        int fd = -1;

        if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) == 1 && (c = CMSG_FIRSTHDR(&msg)))
                memcpy(&fd, CMSG_DATA(c), sizeof(fd));
        return fd;
}

static void try_all(long *answers) {
        for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
                const long *a = attempts[i].args;

                answers[i] = sys_raw(attempts[i].nr, a[0], a[1], a[2], a[3], a[4], 0);
        }
}

static void wait_byte(int sock) {
        char byte;

        if (read(sock, &byte, 1) != 1)
                _exit(90);
}

/* Loads a profile with a listener in a child that then runs fn; returns the child and its listener. */
static pid_t start(enum seccomp_profile profile, void (*fn)(int sock), int *ret_sock, int *ret_listener) {
        int sock[2];
        pid_t pid;

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                int fd = load(profile, SYS_SECCOMP_NEW_LISTENER | SYS_SECCOMP_WAIT_KILLABLE);

                if (fd < 0 || send_fd(sock[1], fd) < 0 || close(fd) < 0)
                        _exit(91);
                fn(sock[1]);
                _exit(0);
        }
        (void) close(sock[1]);
        *ret_sock = sock[0];
        *ret_listener = receive_fd(sock[0]);
        assert_true(*ret_listener >= 0);
        return pid;
}

static void child_tries(int sock) {
        try_all(shared->listened);
        wait_byte(sock);
        try_all(shared->closed);
}

static void attempts_are_answered(enum seccomp_profile profile) {
        struct err err = { 0 };
        int sock, listener, status;
        pid_t pid = start(profile, child_tries, &sock, &listener);

        for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
                struct seccomp_event ev;
                char text[64];

                if (!attempts[i].text)
                        continue;
                assert_true(sys_poll_in(listener, WAIT_MS) & POLLIN);
                assert_int_equal(seccomp_notify_answer(listener, profile, &ev, &err), 1);
                assert_int_equal(ev.pid, pid);
                assert_int_equal(ev.nr, attempts[i].nr);
                seccomp_event_text(&ev, text, sizeof(text));
                assert_string_equal(text, attempts[i].text);
        }
        assert_int_equal(seccomp_notify_answer(listener, profile, &(struct seccomp_event){ 0 }, &err), 0);
        (void) close(listener);
        assert_int_equal(write(sock, "", 1), 1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        (void) close(sock);
        for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
                const struct attempt *a = &attempts[i];

                assert_int_equal(shared->listened[i], -(profile == SECCOMP_STRICT ? a->strict : a->agent));
                assert_int_equal(shared->closed[i], -a->without);
        }
}

static void reported_calls_get_the_tables_errno_and_enosys_without_a_listener(void **state) {
        (void) state;
        attempts_are_answered(SECCOMP_AGENT);
        attempts_are_answered(SECCOMP_STRICT);
        attempts_are_answered(SECCOMP_DEBUG);
}

static void child_exits(int sock) {
        (void) sock;
}

static void a_listener_without_processes_is_an_error(void **state) {
        struct err err = { 0 };
        struct seccomp_event ev;
        int sock, listener;
        pid_t pid = start(SECCOMP_AGENT, child_exits, &sock, &listener);

        (void) state;
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(seccomp_notify_answer(listener, SECCOMP_AGENT, &ev, &err), -ENOTCONN);
        assert_int_equal(err.code, -ENOTCONN);
        (void) close(listener);
        (void) close(sock);
}

static void child_loses_its_child(int sock) {
        pid_t pid = fork();

        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
                (void) sys_umount2("/", 0);
                _exit(0);
        }
        shared->grandchild = pid;
        (void) waitpid(pid, NULL, 0);
        if (write(sock, "", 1) == 1)
                wait_byte(sock);
}

static void a_caller_that_dies_before_the_answer_is_no_event(void **state) {
        struct err err = { 0 };
        struct seccomp_event ev;
        int sock, listener;
        pid_t pid = start(SECCOMP_AGENT, child_loses_its_child, &sock, &listener);
        char byte;

        (void) state;
        assert_true(sys_poll_in(listener, WAIT_MS) & POLLIN);
        while (!*(volatile pid_t *) &shared->grandchild)
                (void) usleep(1000);
        assert_int_equal(kill(shared->grandchild, SIGKILL), 0);
        assert_int_equal(read(sock, &byte, 1), 1);
        assert_int_equal(seccomp_notify_answer(listener, SECCOMP_AGENT, &ev, &err), 0);
        assert_int_equal(write(sock, "", 1), 1);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        (void) close(listener);
        (void) close(sock);
}

/* What the set-up child does between its filter and the command: all of it must work under every profile. */
static void child_starts_command(int sock) {
        static char *const argv[] = { "true", NULL };
        static char *const envp[] = { NULL };
        char text[4096];
        int fd;

        wait_byte(sock);
        fd = sys_openat(AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC, 0);
        if (fd < 0 || sys_read(fd, text, sizeof(text)) <= 0 || sys_close(fd) < 0)
                _exit(92);
        if (sys_prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) < 0)
                _exit(93);
        if (sys_write(sock, "", 1) != 1)
                _exit(94);
        (void) execve("/bin/true", argv, envp);
        _exit(95);
}

static void the_command_can_be_started_under_every_profile(void **state) {
        (void) state;
        for (unsigned p = 0; p < SECCOMP_PROFILES; p++) {
                int sock, listener, status;
                pid_t pid = start(p, child_starts_command, &sock, &listener);
                char byte;

                assert_int_equal(write(sock, "", 1), 1);
                assert_int_equal(read(sock, &byte, 1), 1);
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_int_equal(status, 0);
                (void) close(listener);
                (void) close(sock);
        }
}

static int status_of(void (*fn)(void)) {
        int status = 0;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                fn();
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

static void traces_itself_in_debug(void) {
        if (load(SECCOMP_DEBUG, 0) < 0 || sys_ptrace(0, 0, 0, 0) < 0)
                _exit(1);
}

static void traces_itself_in_agent(void) {
        if (load(SECCOMP_AGENT, 0) < 0 || sys_ptrace(0, 0, 0, 0) != -ENOSYS)
                _exit(1);
}

static void only_debug_may_trace(void **state) {
        (void) state;
        assert_int_equal(status_of(traces_itself_in_debug), 0);
        assert_int_equal(status_of(traces_itself_in_agent), 0);
}

#if defined(__x86_64__)
static void calls_i386(void) {
        long r = 20; /* getpid */

        __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
}

static void calls_i386_filtered(void) {
        if (load(SECCOMP_AGENT, 0) == 0)
                calls_i386();
}

static void calls_x32_filtered(void) {
        if (load(SECCOMP_AGENT, 0) == 0)
                (void) sys_raw(SYS_getpid | 0x40000000, 0, 0, 0, 0, 0, 0);
}

static void i386_calls_kill_the_process(void **state) {
        int status;

        (void) state;
        if (status_of(calls_i386) != 0) {
                print_message("the kernel has no IA32 emulation, and so not this door\n");
                skip();
        }
        status = status_of(calls_i386_filtered);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSYS);
}

static void x32_calls_kill_the_process(void **state) {
        int status = status_of(calls_x32_filtered);

        (void) state;
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSYS);
}
#endif

static int set_up(void **state) {
        (void) state;
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        return shared == MAP_FAILED ? -1 : 0;
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(reported_calls_get_the_tables_errno_and_enosys_without_a_listener),
                cmocka_unit_test(a_listener_without_processes_is_an_error),
                cmocka_unit_test(a_caller_that_dies_before_the_answer_is_no_event),
                cmocka_unit_test(the_command_can_be_started_under_every_profile),
                cmocka_unit_test(only_debug_may_trace),
#if defined(__x86_64__)
                cmocka_unit_test(i386_calls_kill_the_process),
                cmocka_unit_test(x32_calls_kill_the_process),
#endif
        };
        return cmocka_run_group_tests(tests, set_up, NULL);
}
