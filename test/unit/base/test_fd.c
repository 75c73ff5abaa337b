/* test_fd.c - whole reads and writes: bounded, through short transfers, with plain negative errno. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/own.h"

static int dir_fd = -1;
static char dir[] = "/tmp/gabion-test-fd-XXXXXX";

static int set_up(void **state) {
        (void) state;
        if (!mkdtemp(dir))
                return -1;
        dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return dir_fd < 0;
}

static int tear_down(void **state) {
        (void) state;
        (void) unlinkat(dir_fd, "file", 0);
        (void) close(dir_fd);
        return rmdir(dir);
}

static void put(const char *text) {
        AUTO_FD int fd = openat(dir_fd, "file", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void a_file_is_read_whole_and_terminated(void **state) {
        char s[16];

        (void) state;
        memset(s, 'x', sizeof(s));
        put("hello");
        assert_int_equal(fd_read_at(dir_fd, "file", s, sizeof(s)), 5);
        assert_string_equal(s, "hello");
        put("");
        assert_int_equal(fd_read_at(dir_fd, "file", s, sizeof(s)), 0);
        assert_string_equal(s, "");
}

static void one_byte_less_than_the_buffer_is_the_most(void **state) {
        char s[6];

        (void) state;
        put("12345");
        assert_int_equal(fd_read_at(dir_fd, "file", s, sizeof(s)), 5);
        assert_string_equal(s, "12345");
        put("123456");
        assert_int_equal(fd_read_at(dir_fd, "file", s, sizeof(s)), -EFBIG);
}

static void missing_files_and_bad_descriptors_are_plain_errnos(void **state) {
        char s[8];

        (void) state;
        assert_int_equal(fd_read_at(dir_fd, "none", s, sizeof(s)), -ENOENT);
        assert_int_equal(fd_write_at(dir_fd, "none", "x"), -ENOENT);
        assert_int_equal(fd_read_upto(-1, s, sizeof(s)), -EBADF);
        assert_int_equal(fd_write_all(-1, "x", 1), -EBADF);
        assert_int_equal(fd_read_upto(dir_fd, s, sizeof(s)), -EISDIR);
}

static void write_at_does_not_create_and_does_not_truncate(void **state) {
        char s[16];

        (void) state;
        put("abcdef");
        assert_int_equal(fd_write_at(dir_fd, "file", "XY"), 0);
        assert_int_equal(fd_read_at(dir_fd, "file", s, sizeof(s)), 6);
        assert_string_equal(s, "XYcdef");
}

enum { BULK = 1 << 20 };

struct reader {
        int fd;
        char *got; /* BULK + 1 bytes */
        int n;
};

/* Reads slowly, so that the writer is asleep in write() when the signals come. */
static void *read_bulk(void *arg) {
        static const struct timespec nap = { .tv_nsec = 3000000 };
        struct reader *r = arg;

        (void) nanosleep(&nap, NULL);
        r->n = fd_read_upto(r->fd, r->got, BULK + 1);
        return NULL;
}

static void on_alarm(int sig) {
        (void) sig;
}

static void start_alarms(void) {
        struct sigaction sa = { .sa_handler = on_alarm }; /* no SA_RESTART: calls end early */
        struct itimerval every = { .it_interval = { .tv_usec = 200 }, .it_value = { .tv_usec = 200 } };

        assert_int_equal(sigaction(SIGALRM, &sa, NULL), 0);
        assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static void stop_alarms(void) {
        static const struct itimerval never;

        assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
}

/* A pipe holds 64 KiB, so signals cut both sides short many times. */
static void interrupted_transfers_are_completed_in_order(void **state) {
        struct reader reader = { .got = malloc(BULK + 1) };
        char *bytes = malloc(BULK);
        pthread_t thread;
        int ends[2];

        (void) state;
        assert_non_null(reader.got);
        assert_non_null(bytes);
        for (size_t i = 0; i < BULK; i++)
                bytes[i] = (char) (i * 2654435761u >> 13);
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        reader.fd = ends[0];
        assert_int_equal(pthread_create(&thread, NULL, read_bulk, &reader), 0);
        start_alarms();
        assert_int_equal(fd_write_all(ends[1], bytes, BULK), 0);
        (void) close(ends[1]);
        assert_int_equal(pthread_join(thread, NULL), 0);
        stop_alarms();
        assert_int_equal(reader.n, BULK);
        assert_memory_equal(reader.got, bytes, BULK);
        (void) close(ends[0]);
        free(reader.got);
        free(bytes);
}

static void nothing_leaks(void **state) {
        char s[8];
        int before = open("/", O_PATH | O_CLOEXEC);
        int after;

        (void) state;
        (void) close(before);
        put("x");
        for (int i = 0; i < 10; i++) {
                (void) fd_read_at(dir_fd, "file", s, sizeof(s));
                (void) fd_read_at(dir_fd, "none", s, sizeof(s));
                (void) fd_write_at(dir_fd, "file", "y");
        }
        after = open("/", O_PATH | O_CLOEXEC);
        (void) close(after);
        assert_int_equal(before, after); /* the lowest free number is still the same */
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_file_is_read_whole_and_terminated),
                cmocka_unit_test(one_byte_less_than_the_buffer_is_the_most),
                cmocka_unit_test(missing_files_and_bad_descriptors_are_plain_errnos),
                cmocka_unit_test(write_at_does_not_create_and_does_not_truncate),
                cmocka_unit_test(interrupted_transfers_are_completed_in_order),
                cmocka_unit_test(nothing_leaks),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
