/*
 * main.c - runs the attempts, each in a process of its own, and prints a line for each.
 *
 *   gabion-probe [-g GROUPS] [-a ID] [KEY=VALUE...]     KEY: file text abstract path_socket port pid hostname
 *                                                            machine_id boot_id
 *
 * Line: id TAB severity TAB verdict TAB errno TAB milliseconds TAB what TAB technique TAB note. Before each attempt
 * there is the same line with the verdict "started", so that the host knows which attempt a sandbox died of; -a ID then
 * goes on after that one. The first line is "gabion-probe 1", the last "end N" (N counts what -a left out). Refuses to
 * run as real root in the initial namespaces.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "probe/probe.h"

enum { DEADLINE_MS = 4000 };

static const char *const severities[] = { "crit", "high", "med", "low", "control" };
static const char *const verdicts[] = { "stopped", "reached", "absent", "accepted" };

/* Aimed at a runtime's process. Where the sandbox has none and process 1 is this program, they meet only ourselves. */
static const char *const of_init[] = { "C05b", "C06a", "C06b", "C06c", "C06d", "G02c",
                                       "G05e", "G34b", "I12b", "I18a", "J07a" };

static void note_set(struct probe_result *r, const char *note) {
        size_t n = 0;

        for (; note[n] && n < sizeof(r->note) - 1; n++)
                r->note[n] = (unsigned char) note[n] < 0x20 || (unsigned char) note[n] > 0x7e ? '?' : note[n];
        r->note[n] = '\0';
}

void probe_stopped(struct probe_result *r, int err_no, const char *note) {
        r->verdict = PROBE_STOPPED;
        r->err_no = err_no;
        note_set(r, note);
}

void probe_reached(struct probe_result *r, const char *note) {
        r->verdict = PROBE_REACHED;
        r->err_no = 0;
        note_set(r, note);
}

void probe_absent(struct probe_result *r, const char *note) {
        r->verdict = PROBE_ABSENT;
        r->err_no = 0;
        note_set(r, note);
}

void probe_judge(struct probe_result *r, long ret, const char *note) {
        if (ret >= 0)
                probe_reached(r, note);
        else if (ret == -ENOENT)
                probe_absent(r, note);
        else
                probe_stopped(r, (int) -ret, note);
}

static long now_ms(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (long) (ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
}

/* Ends the attempt's whole process group; what left it dies with the sandbox. */
static void reap(pid_t pid) {
        int status;

        (void) kill(-pid, SIGKILL);
        (void) kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
}

/* A process that is killed by the filter or by a limit was stopped; one that does not answer in time was too. */
static void attempt_run(const struct probe_attempt *a, const struct probe_canaries *c, struct probe_result *r) {
        int fds[2];
        struct pollfd p;
        ssize_t n;
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0) {
                probe_stopped(r, errno, "no pipe");
                return;
        }
        pid = fork();
        if (pid == 0) {
                struct probe_result mine = { 0 };

                (void) setpgid(0, 0);
                (void) close(fds[0]);
                a->fn(c, &mine);
                (void) !write(fds[1], &mine, sizeof(mine));
                _exit(0);
        }
        (void) close(fds[1]);
        p = (struct pollfd){ fds[0], POLLIN, 0 };
        n = pid < 0 || poll(&p, 1, DEADLINE_MS) != 1 ? -1 : read(fds[0], r, sizeof(*r));
        (void) close(fds[0]);
        if (pid > 0)
                reap(pid);
        if (n != (ssize_t) sizeof(*r))
                probe_stopped(r, 0,
                              pid < 0 ? "could not even fork"
                              : n < 0 ? "no answer in time"
                                      : "killed in the attempt");
}

/* Real root with nothing around it: whatever worked here would work on somebody's machine. */
static bool is_unconfined(void) {
        char map[128] = "";
        int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, map, sizeof(map) - 1);

        if (fd >= 0)
                (void) close(fd);
        return geteuid() == 0 && n > 0 && strstr(map, "4294967295") && getppid() != 0 && getpid() != 1 &&
               access("/proc/sys/kernel/core_pattern", W_OK) == 0;
}

static int canary_take(struct probe_canaries *c, const char *word) {
        const struct {
                const char *key;
                char *to;
                size_t cap;
        } texts[] = {
                { "file=", c->file, sizeof(c->file) },
                { "text=", c->text, sizeof(c->text) },
                { "abstract=", c->abstract, sizeof(c->abstract) },
                { "path_socket=", c->path_socket, sizeof(c->path_socket) },
                { "hostname=", c->hostname, sizeof(c->hostname) },
                { "machine_id=", c->machine_id, sizeof(c->machine_id) },
                { "boot_id=", c->boot_id, sizeof(c->boot_id) },
        };
        uint64_t v;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (str_has_prefix(word, texts[i].key))
                        return str_copy(texts[i].to, texts[i].cap, word + strlen(texts[i].key));
        if (str_has_prefix(word, "port=") && str_to_u64(word + 5, 65535, &v) == 0)
                c->port = (int) v;
        else if (str_has_prefix(word, "pid=") && str_to_u64(word + 4, INT32_MAX, &v) == 0)
                c->pid = (int) v;
        else
                return -EINVAL;
        return 0;
}

static void line_print(const struct probe_attempt *a, const char *verdict, const struct probe_result *r, long ms) {
        (void) printf("%s\t%s\t%s\t%d\t%ld\t%s\t%s\t%s\n", a->id, severities[a->severity], verdict, r->err_no, ms,
                      a->what, a->technique, r->note);
        (void) fflush(stdout);
}

static void attempt_report(const struct probe_attempt *a, const struct probe_canaries *c) {
        struct probe_result r = { 0 };
        long start = now_ms();

        line_print(a, "started", &r, 0);
        attempt_run(a, c, &r);
        for (size_t i = 0; getpid() == 1 && i < ARRAY_SIZE(of_init); i++)
                if (r.verdict == PROBE_REACHED && str_eq(a->id, of_init[i])) {
                        r.verdict = PROBE_ACCEPTED;
                        note_set(&r, "process 1 is the command itself; there is no other to reach");
                }
        line_print(a, verdicts[r.verdict], &r, now_ms() - start);
}

int main(int argc, char **argv) {
        static const struct probe_attempt *const groups[] = { probe_caps,    probe_namespaces, probe_calls,
                                                              probe_sockets, probe_proc,       probe_devices,
                                                              probe_files,   probe_network,    probe_limits,
                                                              probe_info };
        struct probe_canaries c = { 0 };
        const char *only = NULL, *after = NULL;
        unsigned n = 0;

        if (is_unconfined()) {
                (void) fprintf(stderr,
                               "gabion-probe: this is real root without a sandbox around it; nothing was tried\n");
                return 2;
        }
        for (int i = 1; i < argc; i++)
                if (str_eq(argv[i], "-g") && i + 1 < argc)
                        only = argv[++i];
                else if (str_eq(argv[i], "-a") && i + 1 < argc)
                        after = argv[++i];
                else if (canary_take(&c, argv[i]) < 0) {
                        (void) fprintf(stderr, "gabion-probe: unknown word '%.40s'\n", argv[i]);
                        return 2;
                }
        (void) printf("gabion-probe 1\n");
        for (size_t g = 0; g < ARRAY_SIZE(groups); g++)
                for (const struct probe_attempt *a = groups[g]; a->id; a++) {
                        if (only && !strchr(only, a->id[0]))
                                continue;
                        if (!after)
                                attempt_report(a, &c);
                        else if (str_eq(a->id, after))
                                after = NULL;
                        n++;
                }
        (void) printf("end %u\n", n);
        return 0;
}
