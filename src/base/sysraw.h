/*
 * sysraw.h - one system call, straight to the kernel.
 *
 * libc's syscall() stores failures in errno, which lives in thread-local memory. The sandbox's set-up child shares
 * its parent's memory and runs beside it (see sandbox/child.c), so it may touch nothing of libc. These return the
 * kernel's own answer: a value, or a negative errno.
 */
#pragma once

#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long sys_raw(long nr, long a, long b, long c, long d, long e, long f) {
        long ret;
        register long r10 __asm__("r10") = d;
        register long r8 __asm__("r8") = e;
        register long r9 __asm__("r9") = f;

        __asm__ volatile("syscall"
                         : "=a"(ret)
                         : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                         : "rcx", "r11", "memory");
        return ret;
}
#elif defined(__aarch64__)
static inline long sys_raw(long nr, long a, long b, long c, long d, long e, long f) {
        register long x8 __asm__("x8") = nr;
        register long x0 __asm__("x0") = a;
        register long x1 __asm__("x1") = b;
        register long x2 __asm__("x2") = c;
        register long x3 __asm__("x3") = d;
        register long x4 __asm__("x4") = e;
        register long x5 __asm__("x5") = f;

        __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
        return x0;
}
#else
#error "Gabion runs on x86_64 and aarch64"
#endif

#define SYS_ARG(x) ((long) (x))
#define SYS0(nr) sys_raw(nr, 0, 0, 0, 0, 0, 0)
#define SYS1(nr, a) sys_raw(nr, SYS_ARG(a), 0, 0, 0, 0, 0)
#define SYS2(nr, a, b) sys_raw(nr, SYS_ARG(a), SYS_ARG(b), 0, 0, 0, 0)
#define SYS3(nr, a, b, c) sys_raw(nr, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), 0, 0, 0)
#define SYS4(nr, a, b, c, d) sys_raw(nr, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), 0, 0)
#define SYS5(nr, a, b, c, d, e) sys_raw(nr, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), SYS_ARG(e), 0)
#define SYS6(nr, a, b, c, d, e, f) sys_raw(nr, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), SYS_ARG(e), SYS_ARG(f))
