/* test_generator.c - tables with a fault break the build: the generator is run on copies that were spoilt. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"

static char *generator, *macros;
static char dir[] = "/tmp/gabion-seccomp-XXXXXX";

static const char *const files[] = { "profiles.txt",         "rules.txt", "values.txt", "syscalls-x86_64.txt",
                                     "syscalls-aarch64.txt", "macros.txt" };

static void copy_with(const char *file, const char *from, const char *find, const char *put) {
        static char text[262144], path[4096];
        char *at;
        int n;
        AUTO_FD int fd = -1;

        n = fd_read_at(AT_FDCWD, from, text, sizeof(text) - 256);
        assert_true(n > 0);
        if (find) {
                at = strstr(text, find);
                assert_non_null(at);
                memmove(at + strlen(put), at + strlen(find), strlen(at + strlen(find)) + 1);
                memcpy(at, put, strlen(put));
        }
        (void) snprintf(path, sizeof(path), "%s/%s", dir, file);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

/* The generator's exit status when the first `find` in `file` reads `put`. */
static int status_with(const char *file, const char *find, const char *put) {
        char from[4096], with[4096], out[4096];
        char *argv[] = { generator, dir, SECCOMP_ARCH, with, out, NULL };
        posix_spawn_file_actions_t quiet;
        int status = -1;
        pid_t pid;

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                int is_macros = strcmp(files[i], "macros.txt") == 0;

                (void) snprintf(from, sizeof(from), "%s/%s", SECCOMP_TABLES, files[i]);
                copy_with(files[i], is_macros ? macros : from, strcmp(files[i], file) == 0 ? find : NULL, put);
        }
        (void) snprintf(with, sizeof(with), "%s/macros.txt", dir);
        (void) snprintf(out, sizeof(out), "%s/out.c", dir);
        assert_int_equal(posix_spawn_file_actions_init(&quiet), 0);
        assert_int_equal(posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0), 0);
        assert_int_equal(posix_spawn(&pid, generator, &quiet, NULL, argv, environ), 0);
        (void) posix_spawn_file_actions_destroy(&quiet);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void good_tables_are_accepted(void **state) {
        (void) state;
        assert_int_equal(status_with("", "", ""), 0);
}

static void faults_in_the_tables_are_refused(void **state) {
        static const struct {
                const char *file, *find, *put;
        } faults[] = {
                { "profiles.txt", "\ngetrandom ", "\n# getrandom " },            /* no row */
                { "profiles.txt", "\nsocketpair ", "\nsocket " },                /* two rows, and one missing */
                { "profiles.txt", "\ngetrandom ", "\ngetrandom_ " },             /* a name that no kernel has */
                { "profiles.txt", "| ENOSYS ", "| ENOSYSS" },                    /* no such errno */
                { "profiles.txt", "rule clone", "rule clown" },                  /* no such rule */
                { "rules.txt", "\nclone | else", "\n# clone | else" },           /* a rule without an end */
                { "rules.txt", "AF_INET6 ", "AF_INET7 " },                       /* no such value */
                { "rules.txt", "a1&0xf=SOCK_DGRAM", "a1&0x7=SOCK_DGRAM" },       /* two masks for one argument */
                { "rules.txt", "a1&0xf=SOCK_STREAM", "a1&0xf=SOL_NETLINK" },     /* outside the mask: can never hold */
                { "rules.txt", "| else | notify EPERM", "| else | rule ioctl" }, /* a rule in a rule */
                { "values.txt", "0x5401", "0x5401g" },                           /* not a number */
                { "macros.txt", "__NR_read ", "__NR_read_all " },                /* newer headers than our tables */
                { "macros.txt", "__NR_close_range ", "__NR_close_range 1" },     /* another number in the headers */
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
                if (status_with(faults[i].file, faults[i].find, faults[i].put) != 1)
                        fail_msg("not noticed: '%s' in %s", faults[i].put, faults[i].file);
}

static int clean_up(void **state) {
        char path[4096];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
                (void) unlink(path);
        }
        (void) snprintf(path, sizeof(path), "%s/out.c", dir);
        (void) unlink(path);
        return rmdir(dir);
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(good_tables_are_accepted),
                cmocka_unit_test(faults_in_the_tables_are_refused),
        };

        if (argc != 3 || !mkdtemp(dir))
                return 1;
        generator = argv[1];
        macros = argv[2];
        return cmocka_run_group_tests(tests, NULL, clean_up);
}
