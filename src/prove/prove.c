/*
 * prove.c - one proof: plant, attack, watch, judge.
 *
 * The sandbox is made by run_command(), as for any user, in a process of its own: a run may change the process it is
 * made in, and its output is ours to read. The probe is shown to it as a read-only file.
 */
#include "prove/prove.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "probe/probe.h"
#include "prove/canary.h"

enum { WORDS = 16, WORD = 320, WRAP_WORDS = 96, WRAP_TEXT = 2048, WRAP_SECONDS = 120 };

static int probe_write(const char *path, struct err *err) {
        AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555);

        if (fd < 0 || fd_write_all(fd, gabion_probe_image, gabion_probe_image_size) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "probe: %s: %s", path, strerror(errno));
        return 0;
}

static void host_line(const char *path, char *dst, size_t cap) {
        dst[0] = '\0';
        (void) fd_read_at(AT_FDCWD, path, dst, cap);
        dst[strcspn(dst, "\n")] = '\0';
}

/* The probe's command line: what is planted outside, by name. */
static void words_fill(const struct canary *c, const char *groups, char words[WORDS][WORD], const char *argv[WORDS]) {
        char host[65] = "", machine[64], boot[64];
        size_t n = 0;

        (void) gethostname(host, sizeof(host) - 1);
        host_line("/etc/machine-id", machine, sizeof(machine));
        host_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
        (void) snprintf(words[n++], WORD, "/probe");
        (void) snprintf(words[n++], WORD, "file=%s", c->file);
        (void) snprintf(words[n++], WORD, "abstract=%s", c->abstract);
        (void) snprintf(words[n++], WORD, "path_socket=%s", c->socket);
        (void) snprintf(words[n++], WORD, "port=%d", c->port);
        (void) snprintf(words[n++], WORD, "pid=%d", (int) c->pid);
        (void) snprintf(words[n++], WORD, "hostname=%s", host);
        (void) snprintf(words[n++], WORD, "machine_id=%.38s", machine);
        (void) snprintf(words[n++], WORD, "boot_id=%.38s", boot);
        if (groups) {
                (void) snprintf(words[n++], WORD, "-g");
                (void) snprintf(words[n++], WORD, "%.10s", groups);
        }
        for (size_t i = 0; i < n; i++)
                argv[i] = words[i];
        argv[n] = NULL;
}

/* In the child: standard output is the pipe, standard input is empty; errors go where ours go. */
static _Noreturn void attack(const struct run_options *given, const struct canary *c, int out_fd) {
        static char words[WORDS][WORD];
        static struct run_result res;
        static const char *const env[] = { "PATH=/usr/bin:/bin", "HOME=/home/user", NULL };
        const char *argv[WORDS];
        struct run_options o = *given;
        struct policy_mount *m = &o.policy->mounts[o.policy->n_mounts];
        struct err err = { 0 };

        words_fill(c, c->groups, words, argv);
        o.argv = argv;
        o.env = env;
        o.cwd = "/";
        o.no_stdin = o.quiet = true;
        *m = (struct policy_mount){ .target = "/probe", .writable = false };
        (void) str_copy(m->source, sizeof(m->source), c->probe);
        o.policy->n_mounts++;
        if (dup2(out_fd, STDOUT_FILENO) < 0 || run_command(&o, &res, &err) < 0) {
                (void) dprintf(STDERR_FILENO, "gabion: prove: %s\n", err.msg);
                _exit(1);
        }
        _exit(res.reason == RUN_EXITED && res.exit_code == 0 ? 0 : 2);
}

static int read_all(int fd, struct prove_report *r, struct err *err) {
        int n = fd_read_upto(fd, r->output, sizeof(r->output));

        if (n < 0)
                return err_set(err, n, ERR_PEER, "the probe's output cannot be read: %s", strerror(-n));
        if (prove_parse(r, (size_t) n) < 0)
                return err_set(err, -EBADMSG, ERR_PEER, "the probe did not finish: its output is not whole (%d bytes)",
                               n);
        return 0;
}

/* Words of a command line, split at blanks: {probe} is the program, {args} its arguments, {} both. */
static int wrap_words(char *command, const char *const *probe_argv, const char *ret[WRAP_WORDS]) {
        bool placed = false;
        size_t n = 0;

        for (char *w = command, *end; *(w += strspn(w, " ")); w = end) {
                bool both, args;

                end = w + strcspn(w, " ");
                if (*end)
                        *end++ = '\0';
                both = str_eq(w, "{}");
                args = str_eq(w, "{args}");
                if (both || args)
                        for (size_t i = both ? 0 : 1; probe_argv[i] && n < WRAP_WORDS - 1; i++)
                                ret[n++] = probe_argv[i];
                else if (n < WRAP_WORDS - 1)
                        ret[n++] = str_eq(w, "{probe}") ? probe_argv[0] : w;
                placed |= both || args;
        }
        for (size_t i = 0; !placed && probe_argv[i] && n < WRAP_WORDS - 1; i++)
                ret[n++] = probe_argv[i];
        ret[n] = NULL;
        return n < WRAP_WORDS - 1 && n > 0 ? 0 : -E2BIG;
}

static _Noreturn void attack_other(const char *command, const struct canary *c, int out_fd) {
        static char words[WORDS][WORD], text[WRAP_TEXT];
        const char *argv[WORDS], *all[WRAP_WORDS];
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        words_fill(c, c->groups, words, argv);
        argv[0] = c->probe;
        if (str_copy(text, sizeof(text), command) < 0 || wrap_words(text, argv, all) < 0 ||
            dup2(null, STDIN_FILENO) < 0 || dup2(out_fd, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
                _exit(1);
        (void) setpgid(0, 0);
        (void) alarm(WRAP_SECONDS);
        (void) execvp(all[0], (char *const *) (uintptr_t) all);
        _exit(1);
}

/* command: NULL for our own sandbox. */
static int attack_and_read(const struct run_options *o, const char *command, const struct canary *c,
                           struct prove_report *r, struct err *err) {
        int fds[2], status = 0, result;
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "prove: pipe: %s", strerror(errno));
        pid = fork();
        if (pid == 0) /* careless inheritance would carry it in; the probe looks for such names */
                (void) setenv("GABION_CANARY_SECRET", c->text, 1);
        if (pid == 0 && command)
                attack_other(command, c, fds[1]);
        if (pid == 0 && o)
                attack(o, c, fds[1]);
        (void) close(fds[1]);
        result = pid < 0 ? err_set(err, -errno, ERR_INTERNAL, "prove: fork: %s", strerror(errno))
                         : read_all(fds[0], r, err);
        (void) close(fds[0]);
        if (command && pid > 0)
                (void) kill(-pid, SIGKILL); /* what another sandbox left behind of itself */
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (!command && WIFEXITED(status) && WEXITSTATUS(status) == 1)
                return err_set(err, -ECANCELED, ERR_DENIED, "no sandbox could be started to attack (see above)");
        return result;
}

/* Plants, attacks, looks, removes. */
static int prove_one(const struct run_options *options, const char *command, const char *groups,
                     struct prove_report *ret, struct err *err) {
        struct canary c;
        struct utsname uts;
        uint64_t start = clock_mono_ns();
        int r;

        clock_rfc3339(ret->time);
        (void) uname(&uts);
        (void) snprintf(ret->kernel, sizeof(ret->kernel), "%.60s", uts.release);
        (void) snprintf(ret->machine, sizeof(ret->machine), "%.15s", uts.machine);
        ret->rootless = geteuid() != 0;
        hash_text(ret->probe, gabion_probe_image, gabion_probe_image_size);
        r = canary_plant(&c, err);
        c.groups = groups;
        if (r == 0)
                r = probe_write(c.probe, err);
        if (r == 0)
                r = attack_and_read(options, command, &c, ret, err);
        if (r == 0)
                canary_check(&c, ret);
        canary_remove(&c);
        ret->seconds = (double) (clock_mono_ns() - start) / 1e9;
        return r;
}

int prove_run(const struct run_options *options, const char *groups, struct prove_report *ret, struct err *err) {
        int r;

        memset(ret, 0, sizeof(*ret));
        (void) str_copy(ret->subject, sizeof(ret->subject), "gabion");
        r = policy_hash(options->policy, ret->policy, err);
        if (r < 0)
                return r;
        if (options->policy->n_mounts == POLICY_MOUNTS)
                return err_set(err, -E2BIG, ERR_LIMIT, "prove: the policy must leave one mount free for the probe");
        return prove_one(options, NULL, groups, ret, err);
}

int prove_wrap(const char *name, const char *command, const char *groups, struct prove_report *ret, struct err *err) {
        memset(ret, 0, sizeof(*ret));
        (void) snprintf(ret->subject, sizeof(ret->subject), "%.31s", name);
        return prove_one(NULL, command, groups, ret, err);
}
