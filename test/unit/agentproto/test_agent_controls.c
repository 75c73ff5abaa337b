/*
 * test_agent_controls.c - the real gabion-agent: the controls a command puts on itself, and that each is missing when
 * it is not asked for (else a read-back could never fail). argv[1]: the agent's file.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/sys.h"
#include "host.h"
#include "process.h"

enum { NOBODY = 65534, SECUREBITS = 0xef, ALL = 511, READ_FILE = 1 << 2, SCOPE_ABSTRACT = 1 };

/* Everything is allowed, but uname() is notified: 1 instruction loads the number, 1 compares it, 2 answer. */
static struct sys_bpf_insn filter[] = {
        { 0x20, 0, 0, 0 },
        { 0x15, 0, 1, 0 },
        { 0x06, 0, 0, 0x7fc00000 },
        { 0x06, 0, 0, 0x7fff0000 },
};

static struct outcome ignored;
static char probe[] = "/tmp/gabion-probe-XXXXXX";

/* Rules under which files below the system's directories can be read, and the probe file cannot. */
static int rules(void) {
        static const char *const readable[] = { "/usr", "/etc", "/proc", "/dev" };
        const struct sys_landlock_attr attr = { .handled_fs = READ_FILE, .scoped = SCOPE_ABSTRACT };
        int fd = sys_landlock_create(&attr, sizeof(attr));

        for (size_t i = 0; fd >= 0 && i < ARRAY_SIZE(readable); i++) {
                AUTO_FD int dir = open(readable[i], O_PATH | O_CLOEXEC);

                if (dir < 0 || sys_landlock_add_path(fd, READ_FILE, dir) < 0)
                        return -1;
        }
        return fd;
}

static int set_up(void **state) {
        AUTO_FD int fd = rules();

        if (geteuid() != 0 || fd < 0) {
                print_message("needs root and Landlock with scopes: nothing tested here\n");
                *state = NULL;
                return 0;
        }
        *state = host_start(fd);
        host_configure(*state);
        return 0;
}

static int tear_down(void **state) {
        if (*state)
                host_stop(*state);
        return 0;
}

static struct ap_spawn command(void **state, const char **argv, uint32_t controls) {
        struct ap_spawn s = host_command(argv);

        if (!*state)
                skip();
        s.controls = controls;
        s.uid = s.gid = NOBODY;
        s.securebits = SECUREBITS;
        s.rlimits[0] = (struct ap_rlimit){ RLIMIT_NOFILE, 77, 78 };
        s.rlimits[1] = (struct ap_rlimit){ RLIMIT_CORE, 0, 0 };
        s.n_rlimits = 2;
        filter[1].k = 63;
#if defined(__aarch64__)
        filter[1].k = 160;
#endif
        s.filter = (const uint8_t *) filter;
        s.n_filter = ARRAY_SIZE(filter);
        (void) snprintf(s.probe, sizeof(s.probe), "%s", probe);
        return s;
}

static struct answer answer_of(void **state, const struct ap_spawn *s) {
        host_spawn(*state, 1, s);
        return host_gate(*state);
}

static void has(const struct answer *a, const char *line) {
        if (!strstr(a->ready.status, line))
                fail_msg("'%s' is not in:\n%s", line, a->ready.status);
}

/* True once /proc/PID/fd lists n while the command waits: it closes its last ones just after it has reported. */
static bool has_fds(pid_t pid, unsigned n) {
        for (int i = 0; i < 200; i++) {
                unsigned found = 0;

                for (int fd = 0; fd < 64; fd++) {
                        char path[64];

                        (void) snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) pid, fd);
                        found += faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
                }
                if (found == n)
                        return true;
                (void) usleep(1000);
        }
        return false;
}

static void every_control_is_on_before_the_word_go(void **state) {
        struct ap_spawn s = command(
                state,
                SHELL("id -u; id -g; id -G; ulimit -n; ulimit -Hn; cat /tmp/gabion-probe-* 2>&1 | grep -c denied"),
                ALL);
        struct answer a = answer_of(state, &s);
        static struct outcome o;

        assert_int_equal(a.err_no, 0);
        assert_int_equal(a.ready.id, 1);
        assert_int_equal(a.ready.securebits, SECUREBITS);
        assert_int_equal(a.ready.landlock_errno, EACCES);
        assert_int_equal(a.ready.scope_errno, EPERM);
        assert_true(a.listener >= 0);
        has(&a, "\nUid:\t65534\t65534\t65534\t65534\n");
        has(&a, "\nGid:\t65534\t65534\t65534\t65534\n");
        has(&a, "\nGroups:\t \n");
        has(&a,
            "\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
            "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n");
        assert_true(has_fds(a.pid, 4)); /* 0, 1, 2 and the pair */
        host_go(&a);
        host_finish(*state, 1, &o);
        assert_string_equal(o.text[1], "65534\n65534\n65534\n77\n78\n1\n");
}

/* Who is asked to says that it is there: the same process, with its limits, before its report. */
static void command_says_that_it_is_there(void **state) {
        struct ap_spawn s = command(state, SHELL("true"), ALL);
        struct answer here, ready;
        char path[32], text[4096];

        s.flags = AP_SAY_HERE;
        here = answer_of(state, &s);
        assert_true(here.here);
        assert_int_equal(here.pair, -1);
        (void) snprintf(path, sizeof(path), "/proc/%d/limits", (int) here.pid);
        assert_true(fd_read_at(AT_FDCWD, path, text, sizeof(text)) > 0);
        assert_non_null(strstr(text, "Max open files            77                   78 "));
        ready = host_gate(*state);
        assert_false(ready.here);
        assert_int_equal(ready.pid, here.pid);
        host_go(&ready);
        host_finish(*state, 1, &ignored);
}

static void control_not_asked_for_is_missing_from_the_report(void **state) {
        static const struct {
                uint32_t without;
                const char *line;
        } cases[] = {
                { AP_DROP_CAPS, "\nCapEff:\t00000000000001e0\n" },
                { AP_SECCOMP | AP_SECCOMP_NOTIFY, "\nSeccomp:\t0\n" },
                { AP_IDS, "\nUid:\t0\t0\t0\t0\n" },
                { AP_NO_NEW_PRIVS | AP_LANDLOCK | AP_SECCOMP | AP_SECCOMP_NOTIFY, "\nNoNewPrivs:\t0\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct ap_spawn s = command(state, ARGS("true"), ALL & ~cases[i].without);
                struct answer a = answer_of(state, &s);

                assert_string_equal(a.step, "");
                has(&a, cases[i].line);
                host_go(&a);
                host_finish(*state, 1, &ignored);
        }
}

static void probes_tell_when_landlock_or_securebits_are_missing(void **state) {
        struct ap_spawn s =
                command(state, ARGS("true"), ALL & ~(uint32_t) (AP_LANDLOCK | AP_SECUREBITS | AP_CLOSE_FDS));
        struct answer a = answer_of(state, &s);

        assert_int_equal(a.err_no, 0);
        assert_int_equal(a.ready.landlock_errno, 0);
        assert_int_equal(a.ready.scope_errno, 0);
        assert_int_equal(a.ready.securebits, 0);
        assert_false(has_fds(a.pid, 4));
        host_go(&a);
        host_finish(*state, 1, &ignored);
}

static void control_that_cannot_be_had_ends_the_start(void **state) {
        struct ap_spawn s = command(state, ARGS("true"), ALL & ~(uint32_t) AP_NO_NEW_PRIVS);
        struct answer a = answer_of(state, &s);

        assert_string_equal(a.step, "landlock"); /* neither no_new_privs nor CAP_SYS_ADMIN */
        assert_int_equal(a.err_no, EPERM);
        host_finish(*state, 1, &ignored);
        s = command(state, ARGS("true"), ALL);
        s.rlimits[0].soft = 79; /* above the hard one */
        a = answer_of(state, &s);
        assert_string_equal(a.step, "rlimit");
        assert_int_equal(a.err_no, EINVAL);
        host_finish(*state, 1, &ignored);
}

static void directory_is_entered_as_the_user(void **state) {
        char dir[] = "/tmp/gabion-private-XXXXXX";
        struct ap_spawn s = command(state, ARGS("true"), ALL);
        struct answer a;

        assert_non_null(mkdtemp(dir)); /* mode 0700, root's */
        s.cwd = dir;
        a = answer_of(state, &s);
        assert_int_equal(rmdir(dir), 0);
        assert_string_equal(a.step, "chdir");
        assert_int_equal(a.err_no, EACCES);
        host_finish(*state, 1, &ignored);
}

static void user_may_open_his_own_output_again(void **state) {
        struct ap_spawn s = command(state, SHELL("echo one >/proc/self/fd/1; echo two >/proc/self/fd/2"), ALL);
        struct answer a = answer_of(state, &s);
        static struct outcome o;

        host_go(&a);
        host_finish(*state, 1, &o);
        assert_string_equal(o.text[1], "one\n");
        assert_string_equal(o.text[2], "two\n");

        s = command(state, SHELL("stat -c %u:%g $(tty); echo three >/dev/tty"), ALL & ~(uint32_t) AP_SECCOMP_NOTIFY);
        s.flags = AP_TTY;
        s.n_filter = 1;
        s.filter = (const uint8_t *) &filter[3];
        a = answer_of(state, &s);
        host_go(&a);
        host_finish(*state, 1, &o);
        assert_int_equal(strncmp(o.text[1], "65534:", 6), 0);
        assert_non_null(strstr(o.text[1], "three\r\n"));
}

/*
 * Changing the file-system ids for the pipes clears the parent-death signal. A process between starts an agent and a
 * command and dies, while somebody else still holds the control socket: only the signal can end the agent.
 */
static void agent_dies_with_its_parent_also_after_a_start(void **state) {
        struct ap_spawn s = command(state, ARGS("true"), ALL);
        int status = 0, told[2];
        pid_t between, pid = -1;

        assert_int_equal(pipe2(told, O_CLOEXEC), 0);
        between = fork();
        if (between == 0) {
                AUTO_FD int fd = rules();
                struct host *h = host_start(fd);
                struct answer a;

                host_configure(h);
                host_spawn(h, 1, &s);
                a = host_gate(h);
                host_go(&a);
                host_finish(h, 1, &ignored);
                if (fork() == 0)
                        (void) pause(); /* the holder; the tear-down ends it */
                _exit(write(told[1], &h->pid, sizeof(h->pid)) != sizeof(h->pid));
        }
        assert_int_equal(read(told[0], &pid, sizeof(pid)), sizeof(pid));
        (void) close(told[0]);
        (void) close(told[1]);
        assert_int_equal(waitpid(between, NULL, 0), between);
        for (int i = 0; i < 2000 && waitpid(pid, &status, WNOHANG) != pid; i++)
                (void) usleep(1000);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void agent_is_no_ones_to_look_into(void **state) {
        struct ap_spawn s = command(state, ARGS("true"), ALL);
        struct answer a = answer_of(state, &s);
        struct host *h = *state;
        char path[64];
        int fd;

        host_go(&a);
        host_finish(*state, 1, &ignored);
        (void) snprintf(path, sizeof(path), "/proc/%d/environ", (int) h->pid);
        assert_int_equal(seteuid(NOBODY), 0);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(fd, -1);
}

static int make_probe(void **state) {
        int fd = mkstemp(probe);

        (void) state;
        return fd < 0 || fchmod(fd, 0644) < 0 || close(fd) < 0 ? -1 : 0;
}

static int remove_probe(void **state) {
        (void) state;
        return unlink(probe);
}

int main(int argc, char **argv) {
#define CONTROL_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        static const struct CMUnitTest tests[] = {
                CONTROL_TEST(every_control_is_on_before_the_word_go),
                CONTROL_TEST(command_says_that_it_is_there),
                CONTROL_TEST(control_not_asked_for_is_missing_from_the_report),
                CONTROL_TEST(probes_tell_when_landlock_or_securebits_are_missing),
                CONTROL_TEST(control_that_cannot_be_had_ends_the_start),
                CONTROL_TEST(directory_is_entered_as_the_user),
                CONTROL_TEST(user_may_open_his_own_output_again),
                CONTROL_TEST(agent_dies_with_its_parent_also_after_a_start),
                CONTROL_TEST(agent_is_no_ones_to_look_into),
        };

        if (argc != 2)
                return 2;
        process_use(argv[1]);
        return cmocka_run_group_tests(tests, make_probe, remove_probe);
}
