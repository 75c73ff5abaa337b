/* test_sys.c - the raw calls: a memory-sharing child on its own stack, futex, poll, and errno left alone. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/sys.h"

enum { STACK = 64 * 1024 };

struct child {
        char *stack;
        uint32_t word;
        uintptr_t frame; /* an address on the stack that the child really used */
        int misaligned;
        int status;
        int fd;
};

/* Runs beside the parent in its memory: touches nothing of libc. */
static int child_main(void *arg) {
        struct child *c = arg;
        _Alignas(16) volatile char here[16];

        here[0] = 1;
        c->frame = (uintptr_t) &here[0];
        c->misaligned = (int) (c->frame % 16) + here[0] - 1;
        if (c->fd >= 0)
                (void) sys_close(c->fd);
        __atomic_store_n(&c->word, 1, __ATOMIC_SEQ_CST);
        (void) sys_futex_wake(&c->word);
        return c->status;
}

static void child_init(struct child *c) {
        memset(c, 0, sizeof(*c));
        c->fd = -1;
        c->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        assert_ptr_not_equal(c->stack, MAP_FAILED);
}

static int child_reap(struct child *c, long pid) {
        int status = 0;

        assert_true(pid > 0);
        assert_int_equal(waitpid((pid_t) pid, &status, __WALL), pid);
        (void) munmap(c->stack, STACK);
        return status;
}

static struct sys_clone_args clone_args(const struct child *c, uint64_t flags) {
        return (struct sys_clone_args){
                .flags = flags, .exit_signal = SIGCHLD, .stack = (uint64_t) (uintptr_t) c->stack, .stack_size = STACK
        };
}

static void child_runs_on_its_own_stack_in_our_memory(void **state) {
        struct child c;
        struct sys_clone_args args;
        int status;

        (void) state;
        child_init(&c);
        c.status = 42;
        args = clone_args(&c, SYS_CLONE_VM | SYS_CLONE_FILES);
        status = child_reap(&c, sys_clone_run(&args, child_main, &c));
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 42);
        assert_int_equal(c.word, 1); /* the child's store is in our memory */
        assert_in_range(c.frame, (uintptr_t) c.stack, (uintptr_t) c.stack + STACK);
        assert_int_equal(c.misaligned, 0);
}

static void descriptors_are_shared_only_when_asked(void **state) {
        struct child c;
        struct sys_clone_args args;

        (void) state;
        for (int shared = 0; shared < 2; shared++) {
                int fd = open("/", O_PATH | O_CLOEXEC);

                child_init(&c);
                c.fd = fd;
                args = clone_args(&c, SYS_CLONE_VM | (shared ? SYS_CLONE_FILES : 0));
                (void) child_reap(&c, sys_clone_run(&args, child_main, &c));
                assert_int_equal(fcntl(fd, F_GETFD) < 0, shared);
                if (!shared)
                        (void) close(fd);
        }
}

static void without_shared_memory_the_child_has_a_copy(void **state) {
        struct child c;
        struct sys_clone_args args;
        int status;

        (void) state;
        child_init(&c);
        c.status = 7;
        args = clone_args(&c, 0);
        status = child_reap(&c, sys_clone_run(&args, child_main, &c));
        assert_int_equal(WEXITSTATUS(status), 7);
        assert_int_equal(c.word, 0);
}

static void a_refused_clone_returns_the_errno_and_leaves_libc_alone(void **state) {
        struct sys_clone_args args = { .flags = SYS_CLONE_VM, .exit_signal = 255 };

        (void) state;
        errno = 0;
        assert_int_equal(sys_clone_run(&args, child_main, NULL), -EINVAL);
        assert_int_equal(sys_close(-1), -EBADF);
        assert_int_equal(sys_openat(AT_FDCWD, "/nonexistent", O_RDONLY, 0), -ENOENT);
        assert_int_equal(errno, 0);
}

static void futex_wait_ends_by_the_childs_wake(void **state) {
        struct child c;
        struct sys_clone_args args;
        long pid;
        int r = 0;

        (void) state;
        child_init(&c);
        args = clone_args(&c, SYS_CLONE_VM | SYS_CLONE_FILES);
        pid = sys_clone_run(&args, child_main, &c);
        while (__atomic_load_n(&c.word, __ATOMIC_SEQ_CST) == 0 && (r == 0 || r == -EAGAIN || r == -EINTR))
                r = sys_futex_wait(&c.word, 0, 5000);
        assert_int_not_equal(r, -ETIMEDOUT);
        (void) child_reap(&c, pid);
}

static int wait_for_word(void *arg) {
        struct child *c = arg;

        while (__atomic_load_n(&c->word, __ATOMIC_SEQ_CST) == 0)
                (void) sys_futex_wait(&c->word, 0, 1000);
        return 0;
}

/* Both wait on the same word again after each wake, so that the parent may try until it meets both asleep. */
static void futex_wake_wakes_all_waiters(void **state) {
        struct child c;
        struct child other;
        struct sys_clone_args args;
        uint64_t start = clock_mono_ns();
        long pids[2];
        int woken = 0;

        (void) state;
        child_init(&c);
        child_init(&other);
        args = clone_args(&c, SYS_CLONE_VM);
        pids[0] = sys_clone_run(&args, wait_for_word, &c);
        args = clone_args(&other, SYS_CLONE_VM);
        pids[1] = sys_clone_run(&args, wait_for_word, &c);
        while (woken != 2 && clock_mono_ns() - start < 5000000000u) {
                (void) sys_poll_in(-1, 10);
                woken = sys_futex_wake(&c.word);
        }
        __atomic_store_n(&c.word, 1, __ATOMIC_SEQ_CST);
        (void) sys_futex_wake(&c.word);
        (void) child_reap(&c, pids[0]);
        (void) child_reap(&other, pids[1]);
        assert_int_equal(woken, 2);
}

static void futex_wait_times_out_and_sees_a_change(void **state) {
        uint32_t word = 3;
        uint64_t start = clock_mono_ns();

        (void) state;
        assert_int_equal(sys_futex_wait(&word, 3, 30), -ETIMEDOUT);
        assert_true(clock_mono_ns() - start >= 30000000u);
        assert_int_equal(sys_futex_wait(&word, 4, 5000), -EAGAIN);
        assert_int_equal(sys_futex_wake(&word), 0);
}

static void poll_reports_readable_hang_up_and_time_out(void **state) {
        uint64_t start = clock_mono_ns();
        int ends[2];

        (void) state;
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_int_equal(sys_poll_in(ends[0], 0), 0);
        assert_int_equal(sys_poll_in(ends[0], 30), 0);
        assert_true(clock_mono_ns() - start >= 30000000u);
        assert_int_equal(sys_write(ends[1], "x", 1), 1);
        assert_int_equal(sys_poll_in(ends[0], -1), POLLIN);
        (void) close(ends[1]);
        assert_int_equal(sys_poll_in(ends[0], -1), POLLIN | POLLHUP);
        (void) close(ends[0]);
        assert_int_equal(sys_poll_in(ends[0], 0), POLLNVAL);
}

static void a_pidfd_becomes_readable_when_its_process_is_killed(void **state) {
        struct child c;
        struct sys_clone_args args;
        AUTO_FD int pidfd = -1;
        int status;
        long pid;

        (void) state;
        child_init(&c);
        args = clone_args(&c, SYS_CLONE_VM | SYS_CLONE_PIDFD);
        args.pidfd = (uint64_t) (uintptr_t) &pidfd;
        pid = sys_clone_run(&args, wait_for_word, &c);
        assert_true(pidfd >= 0);
        assert_int_equal(sys_poll_in(pidfd, 0), 0);
        assert_int_equal(sys_pidfd_send_signal(pidfd, SIGKILL), 0);
        assert_true(sys_poll_in(pidfd, 5000) & POLLIN);
        status = child_reap(&c, pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);
        assert_int_equal(sys_pidfd_send_signal(pidfd, 0), -ESRCH);
}

static void openat2_stays_beneath(void **state) {
        AUTO_FD int dir = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
        AUTO_FD int good = -1;

        (void) state;
        good = sys_openat2(dir, "status", O_RDONLY | O_CLOEXEC, 0, SYS_RESOLVE_BENEATH | SYS_RESOLVE_NO_SYMLINKS);
        assert_true(good >= 0);
        assert_int_equal(sys_openat2(dir, "../1", O_PATH, 0, SYS_RESOLVE_BENEATH), -EXDEV);
        assert_int_equal(sys_openat2(dir, "/etc", O_PATH, 0, SYS_RESOLVE_BENEATH), -EXDEV);
        assert_int_equal(sys_openat2(dir, "cwd/.", O_PATH, 0, SYS_RESOLVE_NO_MAGICLINKS), -ELOOP);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(child_runs_on_its_own_stack_in_our_memory),
                cmocka_unit_test(descriptors_are_shared_only_when_asked),
                cmocka_unit_test(without_shared_memory_the_child_has_a_copy),
                cmocka_unit_test(a_refused_clone_returns_the_errno_and_leaves_libc_alone),
                cmocka_unit_test(futex_wait_ends_by_the_childs_wake),
                cmocka_unit_test(futex_wake_wakes_all_waiters),
                cmocka_unit_test(futex_wait_times_out_and_sees_a_change),
                cmocka_unit_test(poll_reports_readable_hang_up_and_time_out),
                cmocka_unit_test(a_pidfd_becomes_readable_when_its_process_is_killed),
                cmocka_unit_test(openat2_stays_beneath),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
