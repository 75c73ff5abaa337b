/*
 * doctor.c - `gabion doctor`: tries each primitive that a sandbox stands on, and names the remedy for what is missing.
 *
 * Theory of operation. A check does the real thing (makes the namespace, loads the filter) rather than ask for a
 * version number, because containers, security modules and sysctls refuse what the kernel could do. Most of them change
 * the process that does them, so each runs in a child of its own and leaves its finding in shared memory; whatever
 * it made ends with it. The exception is the check for control groups, which may have to move this very process to
 * another group first, as `gabion run` does.
 *
 * Invariant: the exit code is 0 only if everything that `gabion run` requires was seen to work.
 */
#include "cli/doctor.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "cli/cli.h"
#include "json/json.h"

enum { CHILD_STACK = 1024 * 1024, CHILD_SECONDS = 30, NAME_WIDTH = 16, LINE_WIDTH = 108, TEXT_COLUMN = 29 };

enum need { NEED_RUN, NEED_USER, NEED_OTHER };

static const struct check {
        const char *name;
        enum need need;
        bool in_this_process;
        void (*fn)(struct doctor_finding *f);
        const char *use; /* who needs it */
} checks[] = {
        { "kernel", NEED_RUN, false, doctor_kernel, "run" },
        { "caller", NEED_RUN, false, doctor_caller, "run" },
        { "user namespaces", NEED_RUN, false, doctor_userns, "run" },
        { "apparmor", NEED_USER, false, doctor_apparmor, "run as an ordinary user" },
        { "subordinate ids", NEED_USER, false, doctor_subids, "run as an ordinary user" },
        { "namespaces", NEED_RUN, false, doctor_namespaces, "run" },
        { "time namespace", NEED_RUN, false, doctor_timens, "run" },
        { "mount API", NEED_RUN, false, doctor_mounts, "run" },
        { "seccomp", NEED_RUN, false, doctor_seccomp, "run" },
        { "landlock", NEED_RUN, false, doctor_landlock, "run" },
        { "memfd exec", NEED_RUN, false, doctor_memfd, "run" },
        { "cgroup version", NEED_RUN, false, doctor_cgroup_version, "run" },
        { "control groups", NEED_RUN, true, doctor_cgroup, "run" },
        { "run directory", NEED_RUN, false, doctor_run_dir, "run" },
        { "self-test", NEED_RUN, false, doctor_selftest, "run" },
        { "idmapped mounts", NEED_OTHER, false, doctor_idmap, "run -v as root" },
        { "filter read-back", NEED_OTHER, false, doctor_readback, "evidence" },
        { "swap", NEED_OTHER, false, doctor_swap, "memory limits" },
        { "overlayfs", NEED_OTHER, false, doctor_overlay, "templates on disk (not built yet)" },
        { "network", NEED_OTHER, false, doctor_network, "run --net, --allow" },
        { "kvm", NEED_OTHER, false, doctor_kvm, "tier microvm (not built yet)" },
        { "qemu", NEED_OTHER, false, doctor_qemu, "tier microvm (not built yet)" },
        { "runsc", NEED_OTHER, false, doctor_runsc, "tier gvisor (not built yet)" },
};

static const char *const state_names[] = { "ok", "limited", "missing", "unknown" };

void doctor_found(struct doctor_finding *f, enum doctor_state state, const char *fmt, ...) {
        va_list ap;

        f->state = state;
        f->remedy[0] = '\0';
        va_start(ap, fmt);
        (void) vsnprintf(f->found, sizeof(f->found), fmt, ap);
        va_end(ap);
}

void doctor_remedy(struct doctor_finding *f, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(f->remedy, sizeof(f->remedy), fmt, ap);
        va_end(ap);
}

struct start {
        int (*fn)(void *arg);
        void *arg;
};

static int child_start(void *arg) {
        const struct start *s = arg;

        (void) sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        (void) alarm(CHILD_SECONDS); /* a check that hangs is an answer too */
        return s->fn(s->arg);
}

int doctor_child(int (*fn)(void *arg), void *arg) {
        void *stack = mmap(NULL, CHILD_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct sys_clone_args args = { .exit_signal = SIGCHLD, .stack_size = CHILD_STACK };
        long pid;

        if (stack == MAP_FAILED)
                return -errno;
        args.stack = (uint64_t) (uintptr_t) stack;
        pid = sys_clone_run(&args, child_start, &(struct start){ fn, arg });
        (void) munmap(stack, CHILD_STACK); /* memory is not shared: the child has a copy */
        return (int) pid;
}

int doctor_wait(int pid) {
        int status;

        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return status;
}

int doctor_privileged(void) {
        return geteuid() == 0 ? 0 : sys_unshare(SYS_CLONE_NEWUSER);
}

struct probe {
        const struct check *check;
        struct doctor_finding *finding;
};

static int probe_main(void *arg) {
        const struct probe *p = arg;

        p->check->fn(p->finding);
        return 0;
}

static void check_run(const struct check *c, struct doctor_finding *shared) {
        struct probe p = { c, shared };
        int pid, status;

        doctor_found(shared, DOCTOR_UNKNOWN, "the check gave no answer");
        if (c->in_this_process) {
                c->fn(shared);
                return;
        }
        pid = doctor_child(probe_main, &p);
        if (pid < 0) {
                doctor_found(shared, DOCTOR_UNKNOWN, "no process for the check: %s", strerror(-pid));
                return;
        }
        status = doctor_wait(pid);
        if (status >= 0 && WIFSIGNALED(status))
                doctor_found(shared, DOCTOR_MISSING, "the check was ended by signal %d", WTERMSIG(status));
}

static bool is_required(const struct check *c) {
        return c->need == NEED_RUN || (c->need == NEED_USER && geteuid() != 0);
}

/* Breaks text at spaces; the cursor stands at `column`, further lines start there too. */
static void print_wrapped(const char *text, int column) {
        size_t room = (size_t) (LINE_WIDTH - column);

        while (strlen(text) > room) {
                size_t n = room;

                while (n > 0 && text[n] != ' ')
                        n--;
                if (n == 0)
                        n = strcspn(text, " "); /* a word longer than a line stays whole: it may be a command */
                (void) printf("%.*s\n", (int) n, text);
                text += n + (text[n] == ' ');
                if (!*text)
                        return;
                (void) printf("%*s", column, "");
        }
        (void) printf("%s\n", text);
}

static void print_finding(const struct check *c, const struct doctor_finding *f, bool colour) {
        static const char *const colours[] = { "\033[32m", "\033[33m", "\033[31m", "\033[33m" };

        (void) printf("  %s%-8s%s %-*s ", colour ? colours[f->state] : "", state_names[f->state],
                      colour ? "\033[0m" : "", NAME_WIDTH, c->name);
        print_wrapped(f->found, TEXT_COLUMN - 1);
        if (!f->remedy[0])
                return;
        (void) printf("%*s-> ", TEXT_COLUMN - 1, "");
        print_wrapped(f->remedy, TEXT_COLUMN + 2);
}

static void print_table(const struct doctor_finding *all, bool works) {
        bool colour = isatty(STDOUT_FILENO);

        for (int required = 1; required >= 0; required--) {
                (void) printf("%s%s\n", required ? "" : "\n",
                              required ? "Needed by gabion run" : "For single features, and for tiers to come");
                for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
                        if (is_required(&checks[i]) == (required == 1))
                                print_finding(&checks[i], &all[i], colour);
        }
        (void) printf(
                "\ngabion run %s for %s on this machine. Its tier is ns: namespaces, ids,\n"
                "filter and limits of its own, on the host's kernel. Tiers gvisor and microvm are not built yet.\n",
                works ? "works" : "does not work as it should", geteuid() == 0 ? "root" : "this user");
}

static int print_json(const struct doctor_finding *all) {
        CLEANUP(json_freep) struct json *list = json_new_array();

        for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
                struct json *o = json_new_object();

                json_set_str(o, "name", checks[i].name);
                json_set_str(o, "state", state_names[all[i].state]);
                json_set_bool(o, "required", is_required(&checks[i]));
                json_set_str(o, "for", checks[i].use);
                json_set_str(o, "found", all[i].found);
                json_set_str(o, "remedy", all[i].remedy[0] ? all[i].remedy : NULL);
                json_add(list, o);
        }
        return cli_print(list, true);
}

static int help(void) {
        (void) printf(
                "Usage: gabion doctor [--json]\n\n"
                "Tries everything that a sandbox stands on, by doing it, and names the remedy for what is missing.\n"
                "Run it as the user who will run gabion. Changes nothing but for the control group 'gabion',\n"
                "which 'gabion run' needs too. Exit code: 0 if all that 'gabion run' requires is there, else 1.\n");
        return 0;
}

int cmd_doctor(int argc, char **argv) {
        struct doctor_finding all[ARRAY_SIZE(checks)];
        struct doctor_finding *shared;
        bool json = argc == 2 && str_eq(argv[1], "--json"), works = true;
        int r = 0;

        if (argc == 2 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")))
                return help();
        if (argc > 1 && !json)
                return cli_usage("doctor", "unknown argument '%.40s'", argv[1]);
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
                return cli_usage("doctor", "out of memory");
        for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
                check_run(&checks[i], shared);
                all[i] = *shared;
                if (is_required(&checks[i]) && (all[i].state == DOCTOR_MISSING || all[i].state == DOCTOR_UNKNOWN))
                        works = false;
        }
        if (json)
                r = print_json(all);
        else
                print_table(all, works);
        return r != 0 ? r : works ? 0 : 1;
}
