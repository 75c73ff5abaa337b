/*
 * limits.c - group I: loads with a fixed upper bound. Reached means that the whole bound was let through.
 *
 * Loads run in a process group of their own ("the load"), so that what a limit kills is the load and not the attempt,
 * and so that one signal cleans up. Memory is always mapped by the load: the kernel's choice of a victim goes by that.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sys.h"
#include "probe/limits_life.h"
#include "probe/probe.h"

enum {
        PROCESSES = 1500,
        THREADS = 3000,
        MEMORY_MIB = 1536,
        DISK_MIB = 768,
        FDS = 20000,
        OPEN_FDS = 16000, /* below the usual hard limits of hosts */
        PTYS = 200,
        LOAD_MS = 3000,
        SETTLE_MS = 150, /* the kernel gives memory back after the process is gone; the next attempt needs it */
};

/* Shared between the attempt and its load. */
struct tally {
        volatile int n;    /* steps done */
        volatile int code; /* why it ended; 0 = the bound was reached */
        volatile int is_done;
};

static struct tally *tally_new(void) {
        void *p = mmap(NULL, sizeof(struct tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        return p == MAP_FAILED ? NULL : p;
}

static void sleep_ms(long ms) {
        struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

        (void) nanosleep(&ts, NULL);
}

static void say(struct probe_result *r, const struct tally *t, int bound, const char *unit) {
        char note[100];

        (void) snprintf(note, sizeof(note), "%d of %d %s", t->n, bound, unit);
        if (t->n >= bound)
                probe_reached(r, note);
        else
                probe_stopped(r, t->code, note);
}

/* Runs fn as the load until it says that it is done, dies, or the time is over; then ends its whole group. */
static void load_run(struct probe_result *r, void (*fn)(struct tally *t), int bound, const char *unit) {
        struct tally *t = tally_new();
        pid_t pid = t ? fork() : -1;
        int status;

        if (pid == 0) {
                (void) setpgid(0, 0);
                fn(t);
                t->is_done = 1;
                for (;;)
                        (void) pause();
        }
        if (pid < 0) {
                probe_stopped(r, EAGAIN, "no load could be started");
                return;
        }
        (void) setpgid(pid, pid);
        for (int ms = 0; ms < LOAD_MS && !t->is_done; ms += 10) {
                sleep_ms(10);
                if (waitpid(pid, &status, WNOHANG) == pid) {
                        t->code = t->code ? t->code : ENOMEM;
                        break;
                }
        }
        (void) kill(-pid, SIGKILL);
        (void) waitpid(pid, &status, 0);
        sleep_ms(SETTLE_MS);
        say(r, t, bound, unit);
}

static void load_forks(struct tally *t) {
        for (; t->n < PROCESSES; t->n++) {
                pid_t pid = fork();

                if (pid == 0)
                        for (;;)
                                (void) pause();
                if (pid < 0) {
                        t->code = errno;
                        return;
                }
        }
}

/* Each child's child is left to init, which must not make it uncounted. */
static void load_orphans(struct tally *t) {
        for (; t->n < PROCESSES; t->n++) {
                pid_t pid = fork();
                int status = 0;

                if (pid == 0) {
                        pid = fork();
                        if (pid == 0)
                                for (;;)
                                        (void) pause();
                        _exit(pid < 0 ? 1 : 0);
                }
                if (pid < 0 || waitpid(pid, &status, 0) < 0 || status) {
                        t->code = EAGAIN;
                        return;
                }
        }
}

static void load_zombies(struct tally *t) {
        for (; t->n < 1000; t->n++) {
                pid_t pid = fork();

                if (pid == 0)
                        _exit(0);
                if (pid < 0) {
                        t->code = errno;
                        return;
                }
        }
}

static void *thread_wait(void *arg) {
        for (;;)
                (void) pause();
        return arg;
}

static int threads_start(struct tally *t, int n) {
        pthread_attr_t attr;
        pthread_t id;
        int ret = pthread_attr_init(&attr);

        (void) pthread_attr_setstacksize(&attr, 16384);
        for (int i = 0; i < n && ret == 0; i++) {
                ret = pthread_create(&id, &attr, thread_wait, NULL);
                if (ret == 0)
                        (void) __atomic_add_fetch(&t->n, 1, __ATOMIC_RELAXED);
        }
        return ret;
}

static void load_threads(struct tally *t) {
        t->code = threads_start(t, THREADS);
}

static void load_mixed(struct tally *t) {
        for (int i = 0; i < 30; i++) {
                pid_t pid = fork();

                if (pid == 0) {
                        int ret = threads_start(t, 50);

                        if (ret)
                                t->code = ret;
                        for (;;)
                                (void) pause();
                }
                if (pid < 0)
                        t->code = errno;
        }
        sleep_ms(400);
}

/* One byte in each page, in steps, so that the tally tells how far it went. */
static void touch(struct tally *t, char *p, int mib) {
        for (int i = 0; i < mib; i++) {
                for (size_t at = 0; at < 1 << 20; at += 4096)
                        ((volatile char *) p)[((size_t) i << 20) + at] = 1;
                (void) __atomic_add_fetch(&t->n, 1, __ATOMIC_RELAXED);
        }
}

static void map_touch(struct tally *t, int fd, int flags, int mib) {
        char *p = mmap(NULL, (size_t) mib << 20, PROT_READ | PROT_WRITE, flags, fd, 0);

        if (p == MAP_FAILED)
                t->code = errno;
        else
                touch(t, p, mib);
}

static void load_memory(struct tally *t) {
        map_touch(t, -1, MAP_PRIVATE | MAP_ANONYMOUS, MEMORY_MIB);
}

static void load_shared(struct tally *t) {
        map_touch(t, -1, MAP_SHARED | MAP_ANONYMOUS, MEMORY_MIB);
}

/* In three, so that it is not the limit on the size of one file that answers. */
static void load_memfd(struct tally *t) {
        (void) sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
        for (int i = 0; i < 3 && !t->code; i++) {
                int fd = memfd_create("probe", MFD_CLOEXEC);

                if (fd < 0 || ftruncate(fd, (off_t) (MEMORY_MIB / 3) << 20) < 0)
                        t->code = errno;
                else
                        map_touch(t, fd, MAP_SHARED, MEMORY_MIB / 3);
        }
}

/* Removed while attached: the kernel frees it with the last process that has it. */
static void load_sysv(struct tally *t) {
        int id = shmget(IPC_PRIVATE, (size_t) MEMORY_MIB << 20, IPC_CREAT | 0600);
        char *p = id < 0 ? (char *) -1 : shmat(id, NULL, 0);

        t->code = p == (char *) -1 ? errno : 0;
        if (id >= 0)
                (void) shmctl(id, IPC_RMID, NULL);
        if (p != (char *) -1)
                touch(t, p, MEMORY_MIB);
}

static void load_split(struct tally *t) {
        for (int i = 0; i < 6; i++) {
                pid_t pid = fork();

                if (pid == 0) {
                        map_touch(t, -1, MAP_PRIVATE | MAP_ANONYMOUS, MEMORY_MIB / 6);
                        for (;;)
                                (void) pause();
                }
        }
        for (int ms = 0; ms < LOAD_MS - 300 && t->n < MEMORY_MIB; ms += 10) {
                int status;

                sleep_ms(10);
                if (waitpid(-1, &status, WNOHANG) > 0) {
                        t->n = t->n < MEMORY_MIB ? t->n : MEMORY_MIB - 1; /* what the dead one held does not count */
                        t->code = ENOMEM;
                        return;
                }
        }
}

/* A read of untouched memory costs a page of page table for each 2 MiB: 800 MiB of kernel memory in all. */
static void load_page_tables(struct tally *t) {
        size_t step = 2u << 20, n = 200000;
        char *p = mmap(NULL, step * n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (p == MAP_FAILED) {
                t->code = errno;
                return;
        }
        (void) madvise(p, step * n, MADV_NOHUGEPAGE);
        for (size_t i = 0; i < n; i++) {
                (void) ((volatile char *) p)[i * step];
                t->n++;
        }
}

static void load_huge(struct tally *t) {
        map_touch(t, -1, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, 16);
}

/*
 * Files in memory belong to no process: where they meet the memory limit, the kernel ends the largest process. The
 * ballast makes that the load, with which the files go too.
 */
static void disk_fill(struct tally *t, const char *dir) {
        size_t ballast = 8u << 20;
        void *p = mmap(NULL, ballast, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char path[64];

        if (p != MAP_FAILED)
                memset(p, 1, ballast);

        (void) sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
        for (int i = 0; i < 3; i++) { /* three files: a limit on the size of one is not a limit on all */
                int fd;

                (void) snprintf(path, sizeof(path), "%s/.probe-fill%d", dir, i);
                fd = sys_openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
                (void) unlink(path);
                if (fd < 0) {
                        t->code = -fd;
                        return;
                }
                for (int mib = 0; mib < DISK_MIB / 3; mib += 16, t->n += 16)
                        if (fallocate(fd, 0, (off_t) mib << 20, 16 << 20) < 0) {
                                t->code = errno;
                                return;
                        }
        }
}

#define LOAD_DISK(name, dir)                                                                                           \
        static void name(struct tally *t) {                                                                            \
                disk_fill(t, dir);                                                                                     \
        }

LOAD_DISK(load_tmp, "/tmp")
LOAD_DISK(load_shm, "/dev/shm")
LOAD_DISK(load_run_dir, "/run")
LOAD_DISK(load_var_tmp, "/var/tmp")
LOAD_DISK(load_cwd, ".")

static void fds_max(void) {
        struct rlimit l;

        if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
                l.rlim_cur = l.rlim_max;
                (void) setrlimit(RLIMIT_NOFILE, &l);
        }
}

static void fd_fill(struct tally *t, int bound, int (*make)(void)) {
        fds_max();
        for (; t->n < bound; t->n++)
                if (make() < 0) {
                        t->code = errno;
                        return;
                }
}

static int make_dup(void) {
        return dup(2);
}

static int make_pty(void) {
        return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static int make_inotify(void) {
        return inotify_init1(IN_CLOEXEC);
}

static int make_timer(void) {
        struct sigevent none = { .sigev_notify = SIGEV_NONE };
        timer_t id;

        return timer_create(CLOCK_MONOTONIC, &none, &id);
}

static int make_queued(void) {
        return sigqueue(getpid(), SIGRTMIN + 2, (union sigval){ 0 });
}

static int make_inflight(void) {
        union {
                struct cmsghdr h;
                char room[CMSG_SPACE(100 * sizeof(int))];
        } u = { 0 };
        struct iovec iov = { (char[1]){ 0 }, 1 };
        struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof(u) };
        int pair[2], many[100], ret;

        if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return -1;
        for (size_t i = 0; i < ARRAY_SIZE(many); i++)
                many[i] = 2;
        u.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(many)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
        memcpy(CMSG_DATA(&u.h), many, sizeof(many));
        ret = (int) sendmsg(pair[0], &m, 0);
        (void) close(pair[0]);
        return ret;
}

#define LOAD_FD(name, bound, make)                                                                                     \
        static void name(struct tally *t) {                                                                            \
                fd_fill(t, bound, make);                                                                               \
        }

LOAD_FD(load_fds, OPEN_FDS, make_dup)
LOAD_FD(load_ptys, PTYS, make_pty)
LOAD_FD(load_inotify, PTYS, make_inotify)
LOAD_FD(load_timers, FDS, make_timer)
LOAD_FD(load_inflight, FDS / 100, make_inflight)

static void load_signals(struct tally *t) {
        sigset_t all;

        (void) sigfillset(&all);
        (void) sigprocmask(SIG_BLOCK, &all, NULL);
        fd_fill(t, FDS, make_queued);
}

#define LIMIT(fn, load, bound, unit)                                                                                   \
        static void fn(const struct probe_canaries *c, struct probe_result *r) {                                       \
                (void) c;                                                                                              \
                load_run(r, load, bound, unit);                                                                        \
        }

LIMIT(limit_forks, load_forks, PROCESSES, "processes")
LIMIT(limit_orphans, load_orphans, PROCESSES, "orphans")
LIMIT(limit_zombies, load_zombies, 1000, "zombies")
LIMIT(limit_threads, load_threads, THREADS, "threads")
LIMIT(limit_mixed, load_mixed, PROCESSES, "threads of 30 processes")
LIMIT(limit_memory, load_memory, MEMORY_MIB, "MiB")
LIMIT(limit_split, load_split, MEMORY_MIB, "MiB in six processes")
LIMIT(limit_shared, load_shared, MEMORY_MIB, "MiB")
LIMIT(limit_memfd, load_memfd, MEMORY_MIB, "MiB")
LIMIT(limit_sysv, load_sysv, MEMORY_MIB, "MiB")
LIMIT(limit_page_tables, load_page_tables, 200000, "pages of page table")
LIMIT(limit_huge, load_huge, 16, "MiB in huge pages")
LIMIT(limit_tmp, load_tmp, DISK_MIB, "MiB")
LIMIT(limit_shm, load_shm, DISK_MIB, "MiB")
LIMIT(limit_run, load_run_dir, DISK_MIB, "MiB")
LIMIT(limit_var_tmp, load_var_tmp, DISK_MIB, "MiB")
LIMIT(limit_cwd, load_cwd, DISK_MIB, "MiB")
LIMIT(limit_fds, load_fds, OPEN_FDS, "descriptors")
LIMIT(limit_inflight, load_inflight, FDS / 100, "messages of 100 descriptors")
LIMIT(limit_ptys, load_ptys, PTYS, "terminals")
LIMIT(limit_inotify, load_inotify, PTYS, "inotify instances")
LIMIT(limit_timers, load_timers, FDS, "timers")
LIMIT(limit_signals, load_signals, FDS, "queued signals")

const struct probe_attempt probe_limits[] = {
        { "I01a", PROBE_HIGH, "1500 processes", "fork bomb", limit_forks },
        { "I01b", PROBE_HIGH, "1500 processes left to init", "fork bomb", limit_orphans },
        { "I02a", PROBE_HIGH, "3000 threads", "thread bomb", limit_threads },
        { "I02b", PROBE_HIGH, "30 processes of 50 threads", "thread bomb", limit_mixed },
        { "I03a", PROBE_HIGH, "touch 1.5 GiB", "memory bomb", limit_memory },
        { "I03b", PROBE_HIGH, "touch 1.5 GiB in six processes", "memory bomb", limit_split },
        { "I03c", PROBE_HIGH, "touch 1.5 GiB of shared memory", "memory bomb", limit_shared },
        { "I04a", PROBE_MED, "1.5 GiB in a memfd", "uncharged memory", limit_memfd },
        { "I04b", PROBE_MED, "1.5 GiB of SysV shared memory", "uncharged memory", limit_sysv },
        { "I04c", PROBE_MED, "800 MiB of page tables", "uncharged memory", limit_page_tables },
        { "I05a", PROBE_MED, "768 MiB in /tmp", "disk fill", limit_tmp },
        { "I05b", PROBE_MED, "768 MiB in the working directory", "disk fill", limit_cwd },
        { "I05c", PROBE_MED, "768 MiB in /dev/shm", "disk fill", limit_shm },
        { "I05d", PROBE_MED, "768 MiB in /run", "disk fill", limit_run },
        { "I05e", PROBE_MED, "768 MiB in /var/tmp", "disk fill", limit_var_tmp },
        { "I05f", PROBE_LOW, "sparse file of 8 TiB", "collector", life_sparse },
        { "I06a", PROBE_LOW, "50000 empty files", "inode fill", life_files },
        { "I07a", PROBE_LOW, "16000 descriptors", "descriptor bomb", limit_fds },
        { "I07b", PROBE_LOW, "20000 descriptors in flight", "descriptor bomb", limit_inflight },
        { "I08a", PROBE_LOW, "200 terminals", "kernel tables", limit_ptys },
        { "I08b", PROBE_LOW, "200 inotify instances", "kernel tables", limit_inotify },
        { "I08c", PROBE_LOW, "20000 POSIX timers", "kernel tables", limit_timers },
        { "I08d", PROBE_LOW, "20000 queued signals", "kernel tables", limit_signals },
        { "I08e", PROBE_LOW, "300 POSIX message queues", "kernel tables", life_mq },
        { "I08f", PROBE_LOW, "1000 SysV message queues", "kernel tables", life_msg },
        { "I09a", PROBE_MED, "three busy loops for 0.6 s", "CPU hog", life_cpu },
        { "I11a", PROBE_HIGH, "a daemon adopted outside", "orphan", life_orphan },
        { "I12a", PROBE_LOW, "1000 zombies", "zombie", limit_zombies },
        { "I12b", PROBE_LOW, "zombies that init leaves", "zombie", life_zombies_left },
        { "I13a", PROBE_HIGH, "outlive SIGKILL while stopped with all signals blocked", "kill evasion", life_kill },
        { "I15a", PROBE_MED, "core dump of a crash", "core handler on the host", life_core },
        { "I16a", PROBE_MED, "20 user and net namespaces", "kernel memory", life_namespaces },
        { "I18a", PROBE_MED, "may signal pid 1", "signal to init", life_signal_init },
        { "I18b", PROBE_HIGH, "may signal processes that are not ours", "signal", life_signal_others },
        { "I19a", PROBE_LOW, "huge pages", "cap evasion", limit_huge },
        { "I21a", PROBE_CONTROL, "20 processes", "", life_control_forks },
        { "I21b", PROBE_CONTROL, "32 MiB of memory", "", life_control_memory },
        { 0 },
};
