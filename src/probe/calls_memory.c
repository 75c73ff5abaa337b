/*
 * calls_memory.c - memory and the page cache. The two page-cache attempts work on a file of their own that is opened
 * for reading only: on a kernel with the bug that file changes, and no other.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sysraw.h"
#include "probe/calls.h"

enum { PAGE = 4096, ROUNDS = 2000 };

void calls_c30a(const struct probe_canaries *c, struct probe_result *r) {
        void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        (void) c;
        calls_accept(r, p == MAP_FAILED ? -errno : 0, "compilers at run time need it");
}

void calls_c30b(const struct probe_canaries *c, struct probe_result *r) {
        void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        (void) c;
        calls_accept(r, p == MAP_FAILED || mprotect(p, PAGE, PROT_READ | PROT_EXEC) < 0 ? -errno : 0,
                     "compilers at run time need it");
}

void calls_c31a(const struct probe_canaries *c, struct probe_result *r) {
        long ret = SYS6(SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

        (void) c;
        if (ret == 0)
                (void) SYS2(SYS_munmap, 0, PAGE);
        calls_success(r, ret);
}

CALLS_ANSWER(c33a, SYS4(SYS_vmsplice, -1, CALLS_BAD, 1, 0))
CALLS_ANSWER(c33b, SYS4(SYS_tee, -1, -1, 1, 0))

/* A file of one page of 'a', open for reading only; already removed. */
static int victim_open(void) {
        char dir[64], path[80], page[PAGE];
        int w, fd = -1;

        if (calls_scratch(dir, sizeof(dir)) < 0)
                return -1;
        (void) snprintf(path, sizeof(path), "%s/f", dir);
        memset(page, 'a', sizeof(page));
        w = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
        if (w >= 0 && write(w, page, sizeof(page)) == (ssize_t) sizeof(page))
                fd = open(path, O_RDONLY | O_CLOEXEC);
        if (w >= 0)
                (void) close(w);
        (void) unlink(path);
        (void) rmdir(dir);
        return fd;
}

static void victim_judge(struct probe_result *r, int fd, const char *note) {
        char page[PAGE] = "";

        if (pread(fd, page, sizeof(page), 0) == (ssize_t) sizeof(page) && memchr(page, 'X', sizeof(page)))
                probe_reached(r, "a file open for reading only has changed");
        else
                probe_stopped(r, 0, note);
}

/* Every slot of the pipe has once been writable memory; a slot that still says so after splice() is the bug. */
void calls_c33c(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int fd = victim_open();
        char page[PAGE] = "";
        int p[2];
        off_t at = 0;
        long size;

        (void) c;
        if (fd < 0 || pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0) {
                probe_absent(r, "no file or no pipe");
                return;
        }
        size = fcntl(p[1], F_GETPIPE_SZ);
        for (long i = 0; i < size / PAGE; i++)
                (void) !write(p[1], page, sizeof(page));
        for (long i = 0; i < size / PAGE; i++)
                (void) !read(p[0], page, sizeof(page));
        if (splice(fd, &at, p[1], NULL, 1, 0) != 1) {
                probe_stopped(r, errno, "no splice");
                return;
        }
        (void) !write(p[1], "X", 1);
        victim_judge(r, fd, "the file is unchanged");
}

struct race {
        void *map;
        volatile int is_over;
};

static void *race_drop(void *arg) {
        struct race *x = arg;

        while (!x->is_over)
                (void) madvise(x->map, PAGE, MADV_DONTNEED);
        return NULL;
}

/* The writer goes through the process's own memory file: the path that once forgot to copy the page. */
void calls_c34a(const struct probe_canaries *c, struct probe_result *r) {
        AUTO_FD int fd = victim_open();
        AUTO_FD int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
        struct race x = { 0 };
        pthread_t t;

        (void) c;
        x.map = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
        if (x.map == MAP_FAILED) {
                probe_absent(r, "no file to map");
                return;
        }
        if (mem < 0 || pthread_create(&t, NULL, race_drop, &x) != 0) {
                probe_stopped(r, errno, "no way to write past the protection");
                return;
        }
        for (int i = 0; i < ROUNDS; i++)
                (void) !pwrite(mem, "X", 1, (off_t) (uintptr_t) x.map);
        x.is_over = 1;
        (void) pthread_join(t, NULL);
        victim_judge(r, fd, "the file is unchanged after the race");
}
