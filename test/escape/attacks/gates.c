/* gates.c - the other doors into an x86_64 kernel: `int 0x80` with i386 numbers, and the x32 numbers. */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
        long got = -1;

#if defined(__x86_64__)
        if (argc == 2 && strcmp(argv[1], "i386") == 0)
                __asm__ volatile("int $0x80" : "=a"(got) : "a"(20L) : "memory"); /* getpid */
        else if (argc == 2 && strcmp(argv[1], "x32") == 0)
                got = syscall(0x40000000 | SYS_getpid);
        else
                got = syscall(SYS_getpid);
#else
        (void) argc;
        (void) argv;
#endif
        printf("answered %ld\n", got);
        return 0;
}
