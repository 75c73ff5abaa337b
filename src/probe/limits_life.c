/*
 * limits_life.c - the attempts of group I that are no plain load: files, queues, CPU share, life and death.
 *
 * Invariant: everything that is made is removed before the function returns; signals go to own children only,
 * elsewhere signal 0 asks for permission and does nothing.
 */
#include "probe/limits_life.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "base/sys.h"
#include "probe/files_look.h"
#include "probe/probe.h"

#define OWN_DIR "/tmp/.probe-many"

enum { FILES = 50000, FILES_MS = 2000, QUEUES = 300, SYSV_QUEUES = 1000, LOOPS = 3, LOOP_MS = 600, TMPFS = 0x01021994 };

static long now_ms(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (long) (ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
}

static void sleep_ms(long ms) {
        struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

        (void) nanosleep(&ts, NULL);
}

static void say(struct probe_result *r, int n, int bound, int code, const char *unit) {
        char note[100];

        (void) snprintf(note, sizeof(note), "%d of %d %s", n, bound, unit);
        if (n >= bound)
                probe_reached(r, note);
        else
                probe_stopped(r, code, note);
}

void life_sparse(const struct probe_canaries *c, struct probe_result *r) {
        int fd = sys_openat(AT_FDCWD, "/tmp/.probe-sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        int ret = fd;

        (void) c;
        (void) unlink("/tmp/.probe-sparse");
        (void) sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
        if (fd >= 0) {
                ret = ftruncate(fd, (off_t) 8 << 40) < 0 ? -errno : 0;
                (void) close(fd);
        }
        look_judge(r, ret, "");
}

/* A file system of the sandbox's own with a cap somewhat above the bound is a cap all the same. */
void life_files(const struct probe_canaries *c, struct probe_result *r) {
        long start = now_ms();
        AUTO_FD int dir = -1;
        struct statfs fs;
        char name[16], note[80];
        int n = 0, code = 0;

        (void) c;
        (void) mkdir(OWN_DIR, 0700);
        dir = sys_openat(AT_FDCWD, OWN_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        for (; dir >= 0 && n < FILES && now_ms() - start < FILES_MS; n++) {
                int fd;

                (void) snprintf(name, sizeof(name), "%d", n);
                fd = sys_openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                if (fd < 0) {
                        code = -fd;
                        break;
                }
                (void) close(fd);
        }
        for (int i = 0; i < n; i++) {
                (void) snprintf(name, sizeof(name), "%d", i);
                (void) sys_unlinkat(dir, name, 0);
        }
        (void) rmdir(OWN_DIR);
        say(r, n, FILES, code, "files");
        if (n == FILES && statfs("/tmp", &fs) == 0 && fs.f_type == TMPFS && fs.f_files > 0 &&
            fs.f_files <= 4ul * FILES) {
                (void) snprintf(note, sizeof(note), "own file system with at most %lu", (unsigned long) fs.f_files);
                look_accepted(r, note);
        }
}

void life_mq(const struct probe_canaries *c, struct probe_result *r) {
        struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 16 };
        char name[32];
        int n = 0, code = 0;

        (void) c;
        for (; n < QUEUES; n++) {
                mqd_t q;

                (void) snprintf(name, sizeof(name), "/gabion-probe-%d", n);
                q = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
                if (q == (mqd_t) -1) {
                        code = errno;
                        break;
                }
                (void) mq_close(q);
        }
        for (int i = 0; i < n; i++) {
                (void) snprintf(name, sizeof(name), "/gabion-probe-%d", i);
                (void) mq_unlink(name);
        }
        say(r, n, QUEUES, code, "queues");
}

void life_msg(const struct probe_canaries *c, struct probe_result *r) {
        static int ids[SYSV_QUEUES];
        int n = 0, code = 0;

        (void) c;
        for (; n < SYSV_QUEUES; n++) {
                ids[n] = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
                if (ids[n] < 0) {
                        code = errno;
                        break;
                }
        }
        for (int i = 0; i < n; i++)
                (void) msgctl(ids[i], IPC_RMID, NULL);
        say(r, n, SYSV_QUEUES, code, "queues");
        if (n == SYSV_QUEUES && !look_ns_is_initial("ipc", LOOK_NS_IPC))
                look_accepted(r, "in an IPC namespace of its own, which has a limit of its own");
}

void life_cpu(const struct probe_canaries *c, struct probe_result *r) {
        pid_t pids[LOOPS];
        struct rusage u;
        cpu_set_t set;
        char note[80];
        long used = 0, start = now_ms(), wall;

        (void) c;
        CPU_ZERO(&set);
        for (int i = 0; i < LOOPS; i++) {
                pids[i] = fork();
                while (pids[i] == 0) /* ends by the signal below */
                        ;
        }
        sleep_ms(LOOP_MS);
        wall = now_ms() - start;
        for (int i = 0; i < LOOPS; i++)
                if (pids[i] > 0) {
                        (void) kill(pids[i], SIGKILL);
                        (void) waitpid(pids[i], NULL, 0);
                }
        if (getrusage(RUSAGE_CHILDREN, &u) == 0)
                used = (long) ((u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
                               (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000);
        (void) snprintf(note, sizeof(note), "%ld ms of CPU in %ld ms", used, wall);
        if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) < 2)
                probe_absent(r, "only one CPU to be had");
        else if (used * 10 > wall * 15)
                probe_reached(r, note);
        else
                probe_stopped(r, 0, note);
}

/* Leaves a process to whoever adopts it; returns its pid, and its parent as it saw it. */
static pid_t orphan_make(bool is_lasting, pid_t *ret_parent) {
        int fds[2];
        pid_t pid, got[2] = { -1, -1 };

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -1;
        pid = fork();
        if (pid == 0) {
                if (fork() == 0) {
                        (void) setsid();
                        for (int i = 0; i < 100 && getppid() != 1; i++)
                                sleep_ms(2);
                        got[0] = getpid();
                        got[1] = getppid();
                        (void) sys_write(fds[1], got, sizeof(got));
                        if (is_lasting)
                                sleep_ms(3000);
                }
                _exit(0);
        }
        (void) close(fds[1]);
        if (pid > 0)
                (void) waitpid(pid, NULL, 0);
        if (read(fds[0], got, sizeof(got)) != (ssize_t) sizeof(got))
                got[0] = -1;
        (void) close(fds[0]);
        *ret_parent = got[1];
        return got[0];
}

void life_orphan(const struct probe_canaries *c, struct probe_result *r) {
        pid_t parent = -1, pid = orphan_make(true, &parent);

        (void) c;
        if (pid > 1)
                (void) kill(pid, SIGKILL);
        if (pid < 0)
                probe_stopped(r, 0, "no orphan could be made");
        else if (parent != 1 || look_ns_is_initial("pid", LOOK_NS_PID))
                probe_reached(r, parent == 1 ? "adopted by the host's init" : "adopted by another process than pid 1");
        else
                probe_stopped(r, 0, "adopted by pid 1 of its own namespace, and ends with it");
}

static bool on_zombie(pid_t pid, void *arg) {
        char path[40], text[256];
        const char *p;

        (void) arg;
        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        if (look_read(path, text, sizeof(text)) <= 0)
                return false;
        p = strrchr(text, ')');
        return p && strncmp(p, ") Z 1 ", 6) == 0;
}

void life_zombies_left(const struct probe_canaries *c, struct probe_result *r) {
        pid_t parent;

        (void) c;
        for (int i = 0; i < 20; i++)
                (void) orphan_make(false, &parent);
        for (int i = 0; i < 50 && look_each_pid(on_zombie, NULL); i++)
                sleep_ms(10);
        if (look_each_pid(on_zombie, NULL))
                probe_reached(r, "zombies stay");
        else
                probe_stopped(r, 0, "init collects them");
}

void life_kill(const struct probe_canaries *c, struct probe_result *r) {
        pid_t pid = fork();
        int status;

        (void) c;
        if (pid == 0) {
                sigset_t all;

                (void) sigfillset(&all);
                (void) sigprocmask(SIG_BLOCK, &all, NULL);
                for (;;)
                        (void) raise(SIGSTOP);
        }
        if (pid > 0) {
                (void) waitpid(pid, &status, WUNTRACED);
                (void) kill(pid, SIGKILL);
        }
        for (int i = 0; pid > 0 && i < 50; i++) {
                if (waitpid(pid, &status, WNOHANG) == pid) {
                        probe_stopped(r, 0, "ended");
                        return;
                }
                sleep_ms(10);
        }
        if (pid < 0)
                probe_stopped(r, EAGAIN, "no child");
        else
                probe_reached(r, "still there after half a second");
}

void life_core(const struct probe_canaries *c, struct probe_result *r) {
        struct rlimit l;
        int status = 0;
        pid_t pid;

        (void) c;
        (void) mkdir(OWN_DIR, 0700);
        pid = fork();
        if (pid == 0) {
                if (getrlimit(RLIMIT_CORE, &l) == 0) {
                        l.rlim_cur = l.rlim_max;
                        (void) setrlimit(RLIMIT_CORE, &l);
                }
                (void) sys_chdir(OWN_DIR);
                (void) raise(SIGQUIT);
                _exit(0);
        }
        if (pid > 0)
                (void) waitpid(pid, &status, 0);
        if (sys_chdir(OWN_DIR) == 0) {
                char name[32];

                (void) snprintf(name, sizeof(name), "core.%d", (int) pid);
                (void) unlink("core");
                (void) unlink(name);
        }
        (void) rmdir(OWN_DIR);
        if (WIFSIGNALED(status) && WCOREDUMP(status))
                probe_reached(r, "a core was written or handed to a handler");
        else
                probe_stopped(r, 0, "no core");
}

void life_namespaces(const struct probe_canaries *c, struct probe_result *r) {
        int n = 0, code = 0;

        (void) c;
        for (int i = 0; i < 20; i++) {
                pid_t pid = fork();
                int status = 0;

                if (pid == 0) {
                        int ret = sys_unshare(SYS_CLONE_NEWUSER | SYS_CLONE_NEWNET);

                        _exit(ret < 0 ? -ret : 0);
                }
                if (pid < 0 || waitpid(pid, &status, 0) < 0)
                        break;
                code = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
                n += code == 0;
                if (code)
                        break;
        }
        say(r, n, 20, code, "namespaces");
}

void life_signal_init(const struct probe_canaries *c, struct probe_result *r) {
        (void) c;
        look_judge(r, sys_kill(1, 0), "");
}

static bool on_foreign(pid_t pid, void *arg) {
        if (pid == 1 || pid == getpid() || pid == getppid() || getsid(pid) == getsid(0) || sys_kill(pid, 0) < 0)
                return false;
        *(pid_t *) arg = pid;
        return true;
}

void life_signal_others(const struct probe_canaries *c, struct probe_result *r) {
        pid_t pid = 0;
        char note[40];

        (void) c;
        if (look_each_pid(on_foreign, &pid)) {
                (void) snprintf(note, sizeof(note), "process %d", (int) pid);
                probe_reached(r, note);
        } else {
                probe_stopped(r, 0, "none");
        }
}

void life_control_forks(const struct probe_canaries *c, struct probe_result *r) {
        int n = 0;

        (void) c;
        for (; n < 20; n++) {
                pid_t pid = fork();

                if (pid == 0) {
                        sleep_ms(50);
                        _exit(0);
                }
                if (pid < 0)
                        break;
        }
        while (waitpid(-1, NULL, 0) > 0)
                ;
        say(r, n, 20, EAGAIN, "processes");
}

void life_control_memory(const struct probe_canaries *c, struct probe_result *r) {
        size_t n = 32u << 20;
        char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        (void) c;
        if (p == MAP_FAILED) {
                probe_stopped(r, errno, "");
                return;
        }
        memset(p, 1, n);
        probe_reached(r, "");
        (void) munmap(p, n);
}
