/*
 * attack.c - the process that attacks, and the reading of its lines.
 *
 * Our sandbox is made by run_command(), as for any user, in a process of its own: a run may change the process it is
 * made in, and its output is ours to read. The probe is shown to it as a read-only file. While the probe works, its
 * process is looked at from here.
 */
#include "prove/attack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "json/json.h"
#include "prove/observe.h"

enum {
        WORDS = 16,
        WORD = 320,
        WRAP_WORDS = 96,
        WRAP_TEXT = 8192,
        SECONDS = 300,
        SAID = 160,
        DEATHS = 24,
        END_MS = 10000
};

static void host_line(const char *path, char *dst, size_t cap) {
        dst[0] = '\0';
        (void) fd_read_at(AT_FDCWD, path, dst, cap);
        dst[strcspn(dst, "\n")] = '\0';
}

/* The probe's command line: what is planted outside, by name. after: the attempt to go on after, or NULL. */
static void words_fill(const struct canary *c, const char *program, const char *after, char words[WORDS][WORD],
                       const char *argv[WORDS]) {
        char host[65] = "", machine[64], boot[64];
        size_t n = 0;

        (void) gethostname(host, sizeof(host) - 1);
        host_line("/etc/machine-id", machine, sizeof(machine));
        host_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
        (void) snprintf(words[n++], WORD, "%s", program);
        (void) snprintf(words[n++], WORD, "file=%s", c->file);
        (void) snprintf(words[n++], WORD, "abstract=%s", c->name);
        (void) snprintf(words[n++], WORD, "path_socket=%s", c->socket);
        (void) snprintf(words[n++], WORD, "port=%d", c->port);
        (void) snprintf(words[n++], WORD, "pid=%d", (int) c->pid);
        (void) snprintf(words[n++], WORD, "hostname=%s", host);
        (void) snprintf(words[n++], WORD, "machine_id=%.38s", machine);
        (void) snprintf(words[n++], WORD, "boot_id=%.38s", boot);
        if (c->groups) {
                (void) snprintf(words[n++], WORD, "-g");
                (void) snprintf(words[n++], WORD, "%.10s", c->groups);
        }
        if (after) {
                (void) snprintf(words[n++], WORD, "-a");
                (void) snprintf(words[n++], WORD, "%s", after);
        }
        for (size_t i = 0; i < n; i++)
                argv[i] = words[i];
        argv[n] = NULL;
}

/* In the child: standard output is the pipe, standard input is empty; errors go where ours go. */
static _Noreturn void attack_own(const struct run_options *given, const struct canary *c, const char **argv,
                                 struct attack_outcome *outcome, int out_fd) {
        static struct run_result res;
        static const char *const env[] = { "PATH=/usr/bin:/bin", "HOME=/home/user", NULL };
        struct run_options o = *given;
        struct policy_mount *m = &o.policy->mounts[o.policy->n_mounts];
        struct err err = { 0 };
        int r;

        outcome->is_oom = false; /* of an earlier round */
        o.argv = argv;
        o.env = env;
        o.cwd = "/";
        o.no_stdin = o.quiet = true;
        o.evidence_path = c->statement;
        *m = (struct policy_mount){ .target = "/probe", .writable = false };
        (void) str_copy(m->source, sizeof(m->source), c->probe);
        o.policy->n_mounts++;
        r = dup2(out_fd, STDOUT_FILENO) < 0 ? -errno : run_command(&o, &res, &err);
        memcpy(outcome->evidence, res.evidence, sizeof(outcome->evidence));
        memcpy(outcome->mismatch, res.mismatch, sizeof(outcome->mismatch));
        outcome->is_oom = r >= 0 && res.reason == RUN_OOM;
        if (r < 0) {
                (void) dprintf(STDERR_FILENO, "gabion: prove: %s\n", err.msg);
                _exit(1);
        }
        _exit(res.reason == RUN_EXITED && res.exit_code == 0 ? 0 : 2);
}

/* One word with its placeholders filled in, into the text. */
static const char *word_expand(const char *word, const struct canary *c, const struct bundle *b, struct buf *text) {
        const struct {
                const char *key, *value;
        } places[] = { { "{probe}", c->probe }, { "{bundle}", b->dir }, { "{name}", c->name } };
        size_t start = text->len;

        while (*word) {
                size_t i = 0;

                while (i < ARRAY_SIZE(places) && !str_has_prefix(word, places[i].key))
                        i++;
                if (i < ARRAY_SIZE(places))
                        buf_addf(text, "%s", places[i].value);
                else
                        buf_add(text, word, 1);
                word += i < ARRAY_SIZE(places) ? strlen(places[i].key) : 1;
        }
        buf_add(text, "", 1);
        return text->bad ? NULL : text->p + start;
}

/* Words of a command line, split at blanks: {args} is the probe's arguments, {} the probe with them. */
static int words_wrap(char *command, const char *const *probe_argv, const struct canary *c, const struct bundle *b,
                      const char *ret[WRAP_WORDS]) {
        static char space[WRAP_TEXT]; /* so that nothing moves while words point into it */
        struct buf text = { .p = space, .cap = sizeof(space), .max = sizeof(space) - 1 };
        bool placed = b->dir[0] != '\0'; /* the configuration has them */
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
                else if (n < WRAP_WORDS - 1 && !(ret[n++] = word_expand(w, c, b, &text)))
                        return -E2BIG;
                placed |= both || args;
        }
        for (size_t i = 0; !placed && probe_argv[i] && n < WRAP_WORDS - 1; i++)
                ret[n++] = probe_argv[i];
        ret[n] = NULL;
        return n < WRAP_WORDS - 1 && n > 0 ? 0 : -E2BIG;
}

/* In the child: standard input is a pipe of its own that is empty, and not /dev/null: some runtimes give what they are
 * passed to the container's user, and that would be the host's device. */
static _Noreturn void attack_other(const char *command, const char *const *probe_argv, const struct canary *c,
                                   const struct bundle *b, const int fds[2]) {
        static char text[PROVE_COMMAND];
        const char *all[WRAP_WORDS];
        int empty[2];

        if (str_copy(text, sizeof(text), command) < 0 || words_wrap(text, probe_argv, c, b, all) < 0 ||
            pipe2(empty, O_CLOEXEC) < 0 || dup2(empty[0], STDIN_FILENO) < 0 || dup2(fds[0], STDOUT_FILENO) < 0 ||
            dup2(fds[1], STDERR_FILENO) < 0)
                _exit(1);
        (void) setpgid(0, 0);
        (void) execvp(all[0], (char *const *) (uintptr_t) all);
        (void) dprintf(STDERR_FILENO, "%s: %s\n", all[0], strerror(errno));
        _exit(1);
}

/* Reads to the end, or to the deadline, behind the first n bytes; looks at the attacker as soon as it speaks. */
static int output_read(int fd, uint64_t deadline_ms, size_t n, const struct canary *c, struct prove_report *r) {
        for (;;) {
                uint64_t now = clock_mono_ns() / 1000000;
                struct pollfd p = { fd, POLLIN, 0 };
                ssize_t k;

                if (now >= deadline_ms || poll(&p, 1, (int) (deadline_ms - now)) <= 0)
                        return -ETIMEDOUT;
                k = read(fd, r->output + n, sizeof(r->output) - 1 - n);
                if (k < 0 && errno != EINTR)
                        return -errno;
                if (!r->posture.seen && k > 0)
                        observe_posture(c->name, &r->posture);
                if (k == 0)
                        return (int) n;
                n += k > 0 ? (size_t) k : 0;
        }
}

/* What the rounds of one attack share. */
struct round {
        struct attack_outcome *outcome;
        int said_fd; /* what another sandbox says to standard error */
        uint64_t deadline_ms;
        size_t n; /* output kept of earlier rounds */
        int status;
};

/* What a sandbox that did not run said: its first line that has one. */
static void said_read(int fd, char dst[SAID]) {
        ssize_t n = pread(fd, dst, SAID - 1, 0);
        size_t start;

        dst[n > 0 ? n : 0] = '\0';
        start = strspn(dst, "\r\n \t");
        memmove(dst, dst + start, strlen(dst + start) + 1);
        dst[strcspn(dst, "\r\n")] = '\0';
        for (char *p = dst; *p; p++)
                if ((unsigned char) *p < 0x20 || (unsigned char) *p > 0x7e)
                        *p = '?';
}

static int judge(int n, const struct attack *a, int said_fd, int status, struct prove_report *r, struct err *err) {
        char said[SAID] = "";

        if (!a->command && WIFEXITED(status) && WEXITSTATUS(status) == 1)
                return err_set(err, -ECANCELED, ERR_DENIED, "no sandbox could be started to attack (see above)");
        if (n == -ETIMEDOUT)
                return err_set(err, n, ERR_PEER, "the probe did not finish in %d s", SECONDS);
        if (n < 0)
                return err_set(err, n, ERR_PEER, "the probe's output cannot be read: %s", strerror(-n));
        if (said_fd >= 0)
                said_read(said_fd, said);
        if (n == 0 && said[0])
                return err_set(err, -ECANCELED, ERR_PEER, "it does not run here: %s", said);
        if (prove_parse(r, (size_t) n) < 0)
                return err_set(err, -EBADMSG, ERR_PEER,
                               "the probe did not finish: its output is not whole (%d bytes)%s%s", n,
                               said[0] ? ": " : "", said);
        return 0;
}

static void statement_read(const struct canary *c, const struct attack_outcome *outcome, struct prove_report *r) {
        CLEANUP(json_freep) struct json *doc = NULL;
        struct err err = { 0 };
        int n = fd_read_at(AT_FDCWD, c->statement, r->evidence, sizeof(r->evidence));

        if (n <= 0 || json_parse("evidence", r->evidence, (size_t) n, &doc, &err) < 0) {
                r->evidence[0] = '\0';
                return;
        }
        (void) str_copy(r->evidence_hash, sizeof(r->evidence_hash), outcome->evidence);
        observe_statement(doc, &r->posture);
}

/* Its output has ended, so it should too; what does not is ended. Another sandbox leads a process group. */
static void end_wait(pid_t pid, bool is_group, bool patient) {
        AUTO_FD int fd = sys_pidfd_open(pid);

        if (!patient || fd < 0 || sys_poll_in(fd, END_MS) == 0)
                (void) kill(is_group ? -pid : pid, SIGKILL);
}

/* One sandbox, from its start to its end. Returns how much output there is now. */
static int attack_once(const struct attack *a, const struct canary *c, const char **argv, const struct bundle *b,
                       struct round *round, struct prove_report *r) {
        int fds[2], n;
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid == 0) /* careless inheritance would carry it in; the probe looks for such names */
                (void) setenv("GABION_CANARY_SECRET", c->text, 1);
        if (pid == 0 && a->command)
                attack_other(a->command, argv, c, b, (const int[]){ fds[1], round->said_fd });
        if (pid == 0)
                attack_own(a->options, c, argv, round->outcome, fds[1]);
        (void) close(fds[1]);
        n = pid < 0 ? -errno : output_read(fds[0], round->deadline_ms, round->n, c, r);
        (void) close(fds[0]);
        if (pid > 0)
                end_wait(pid, a->command != NULL, n >= 0);
        while (pid > 0 && waitpid(pid, &round->status, 0) < 0 && errno == EINTR)
                ;
        if (!a->command)
                return n;
        /* What another sandbox left of itself; an engine may still be tidying up, which is given its time. */
        if (observe_left(b->dir[0] ? b->dir : c->name, NULL) > 0)
                observe_kill(b->dir[0] ? b->dir : c->name);
        observe_kill(c->name);
        return n;
}

/* A round of its own, with its own bundle; the words say where to go on. */
static int attack_round(const struct attack *a, const struct canary *c, const char *after, struct round *round,
                        struct prove_report *r, struct err *err) {
        static char words[WORDS][WORD];
        struct bundle b = { "" };
        const char *argv[WORDS];
        int n;

        words_fill(c, a->bundle || !a->command ? "/probe" : c->probe, after, words, argv);
        n = a->bundle ? bundle_make(&b, argv, err) : 0;
        if (n == 0)
                n = attack_once(a, c, argv, &b, round, r);
        bundle_remove(&b, c->name);
        return n;
}

/* The first line of a later round is the header again. */
static int header_drop(char *output, int from, int n) {
        const char *end = memchr(output + from, '\n', (size_t) (n - from));
        int skip = end ? (int) (end - (output + from)) + 1 : n - from;

        memmove(output + from, output + from + skip, (size_t) (n - from - skip));
        return n - skip;
}

int attack_make(const struct attack *a, const struct canary *c, struct attack_outcome *outcome, struct prove_report *r,
                struct err *err) {
        AUTO_FD int said_fd = a->command ? memfd_create("said", MFD_CLOEXEC) : -1;
        struct round round = { .outcome = outcome,
                               .said_fd = said_fd,
                               .deadline_ms = clock_mono_ns() / 1000000 + SECONDS * 1000ull };
        char died[PROVE_ID];
        int kept, n = attack_round(a, c, NULL, &round, r, err);

        /* A sandbox that dies of an attempt has stopped it. Ours may die of the memory limit only. */
        while ((a->command || outcome->is_oom) && n > 0 && r->deaths < DEATHS &&
               (kept = prove_died(r->output, (size_t) n, died)) > 0) {
                r->deaths++;
                round.n = (size_t) kept;
                n = attack_round(a, c, died, &round, r, err);
                n = n > kept ? header_drop(r->output, kept, n) : n;
        }
        if (!a->command)
                statement_read(c, outcome, r);
        return judge(n, a, said_fd, round.status, r, err);
}
