/*
 * fortify.c - the checked functions that Debian's static libraries call, for they are compiled with _FORTIFY_SOURCE
 * against glibc; musl has none. Each gets the size of the destination and ends the program rather than exceed it, as
 * glibc's do. (That formats with %n are not in writable memory is not checked: all of theirs are literals.)
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int checked_snprintf(char *dst, size_t n, int flag, size_t size, const char *fmt, ...) __asm__("__snprintf_chk")
        __attribute__((format(printf, 5, 6)));
int checked_vsnprintf(char *dst, size_t n, int flag, size_t size, const char *fmt,
                      va_list ap) __asm__("__vsnprintf_chk") __attribute__((format(printf, 5, 0)));
int checked_sprintf(char *dst, int flag, size_t size, const char *fmt, ...) __asm__("__sprintf_chk")
        __attribute__((format(printf, 4, 5)));
char *checked_strncpy(char *dst, const char *src, size_t n, size_t size) __asm__("__strncpy_chk");
ssize_t checked_read(int fd, void *dst, size_t n, size_t size) __asm__("__read_chk");
void checked_explicit_bzero(void *dst, size_t n, size_t size) __asm__("__explicit_bzero_chk");

static void check(size_t n, size_t size) {
        static const char said[] = "*** buffer overflow detected ***: terminated\n";

        if (n <= size)
                return;
        if (write(STDERR_FILENO, said, sizeof(said) - 1) < 0)
                abort();
        abort();
}

int checked_vsnprintf(char *dst, size_t n, int flag, size_t size, const char *fmt, va_list ap) {
        (void) flag;
        check(n, size);
        return vsnprintf(dst, n, fmt, ap);
}

int checked_snprintf(char *dst, size_t n, int flag, size_t size, const char *fmt, ...) {
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = checked_vsnprintf(dst, n, flag, size, fmt, ap);
        va_end(ap);
        return r;
}

int checked_sprintf(char *dst, int flag, size_t size, const char *fmt, ...) {
        va_list ap;
        int r;

        (void) flag;
        va_start(ap, fmt);
        r = vsnprintf(dst, size < INT_MAX ? size : INT_MAX, fmt, ap);
        va_end(ap);
        if (r >= 0)
                check((size_t) r + 1, size);
        return r;
}

char *checked_strncpy(char *dst, const char *src, size_t n, size_t size) {
        check(n, size);
        return strncpy(dst, src, n);
}

ssize_t checked_read(int fd, void *dst, size_t n, size_t size) {
        check(n, size);
        return read(fd, dst, n);
}

void checked_explicit_bzero(void *dst, size_t n, size_t size) {
        check(n, size);
        explicit_bzero(dst, n);
}
