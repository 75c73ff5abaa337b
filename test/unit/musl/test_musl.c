/*
 * What src/musl puts in the place of musl's functions, or adds. A musl program, so without cmocka, which is one of
 * glibc; it prints what is wrong and fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int call_snprintf(char *dst, size_t n, int flag, size_t size, const char *fmt, ...) __asm__("__snprintf_chk");
int call_sprintf(char *dst, int flag, size_t size, const char *fmt, ...) __asm__("__sprintf_chk");
char *call_strncpy(char *dst, const char *src, size_t n, size_t size) __asm__("__strncpy_chk");
ssize_t call_read(int fd, void *dst, size_t n, size_t size) __asm__("__read_chk");
void call_bzero(void *dst, size_t n, size_t size) __asm__("__explicit_bzero_chk");

static int failures;

static void expect(bool ok, const char *what) {
        if (ok)
                return;
        printf("wrong: %s\n", what);
        failures++;
}

/* Each function with a destination of 8 bytes. */
static void with_size(int which, size_t n) {
        char dst[64] = "";
        int fd;

        switch (which) {
        case 0:
                (void) call_snprintf(dst, n, 1, 8, "%d", 1234567);
                break;
        case 1:
                (void) call_sprintf(dst, 1, 8, "%.*s", (int) n - 1, "1234567890");
                break;
        case 2:
                (void) call_strncpy(dst, "1234567890", n, 8);
                break;
        case 3:
                fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
                _exit(fd < 0 || call_read(fd, dst, n, 8) != (ssize_t) n);
        default:
                call_bzero(dst, n, 8);
        }
        _exit(0);
}

static int status_of(int which, size_t n) {
        const struct rlimit none = { 0 };
        int status = -1;
        pid_t pid = fork();

        if (pid == 0) {
                (void) setrlimit(RLIMIT_CORE, &none);
                (void) close(STDERR_FILENO);
                with_size(which, n);
        }
        (void) waitpid(pid, &status, 0);
        return status;
}

static void sizes_are_checked(void) {
        for (int which = 0; which < 5; which++) {
                int inside = status_of(which, 8), beyond = status_of(which, 9);

                expect(WIFEXITED(inside) && WEXITSTATUS(inside) == 0, "a checked function within its bound");
                expect(WIFSIGNALED(beyond) && WTERMSIG(beyond) == SIGABRT, "a checked function beyond its bound");
        }
}

/* Where musl says otherwise. */
static void errors_have_the_words_of_glibc(void) {
        char text[64];

        expect(strcmp(strerror(EIO), "Input/output error") == 0, "strerror(EIO)");
        expect(strcmp(strerror(ENOMEM), "Cannot allocate memory") == 0, "strerror(ENOMEM)");
        expect(strcmp(strerror(4000), "Unknown error 4000") == 0, "strerror(4000)");
        expect(strcmp(strerror(-1), "Unknown error -1") == 0, "strerror(-1)");
        expect(strcmp(strerrorname_np(ENOENT), "ENOENT") == 0, "strerrorname_np(ENOENT)");
        expect(!strerrorname_np(4000) && !strerrordesc_np(-1), "names of no errors");
        errno = ELOOP;
        (void) snprintf(text, sizeof(text), "%m");
        expect(strcmp(text, "Too many levels of symbolic links") == 0, "%m");
}

int main(void) {
        sizes_are_checked();
        errors_have_the_words_of_glibc();
        return failures > 0;
}
