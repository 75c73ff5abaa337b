/* main.c - finds the sub-command and gives it a process in a known state: standard descriptors, nothing else open. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/build.h"
#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"
#include "cli/cli.h"

static const struct command {
        const char *name;
        int (*fn)(int argc, char **argv);
        const char *what;
} commands[] = {
        { "run", cmd_run, "run a command in a new sandbox" },
        { "plan", cmd_plan, "show what a command would get, without starting it" },
        { "policy", cmd_policy, "check, explain, compare and update policies" },
        { "egress", cmd_egress, "show what sandboxes tried to reach" },
        { "reach", cmd_reach, "probe what a running sandbox can reach, and compare it with its policy" },
        { "prove", cmd_prove, "attack a sandbox on this machine, and show the result" },
        { "audit", cmd_log, "read, verify and export the audit log" },
        { "dossier", cmd_log, "everything about one sandbox in one signed file" },
        { "verify", cmd_log, "check a signed report or dossier, offline" },
        { "serve", cmd_serve, "make this machine a sandbox service with an API" },
        { NULL, NULL, "\nSandboxes of a server:" },
        { "create", cmd_remote, "make a sandbox" },
        { "exec", cmd_remote, "run a command in a sandbox" },
        { "shell", cmd_remote, "a terminal in a sandbox" },
        { "ps", cmd_remote, "list sandboxes" },
        { "top", cmd_remote, "what sandboxes use, again and again" },
        { "inspect", cmd_remote, "everything about a sandbox, as JSON" },
        { "logs", cmd_remote, "what happened to a sandbox" },
        { "cp", cmd_remote, "copy files to and from a sandbox" },
        { "port", cmd_remote, "reach a port of a sandbox" },
        { "stop", cmd_remote, "end sandboxes, after their commands had time to end" },
        { "rm", cmd_remote, "end sandboxes at once" },
        { NULL, NULL, "" },
        { "doctor", cmd_doctor, "check what this machine offers, with remedies" },
        { "completion", cmd_completion, "print a completion script for bash, zsh or fish" },
        { "version", cmd_version, "print the version" },
};

int cmd_version(int argc, char **argv) {
        char build[BUILD_TEXT];

        (void) argc;
        (void) argv;
        build_id(build);
        (void) printf("gabion %s build %s\n", GABION_VERSION, build[0] ? build : "unknown");
        return 0;
}

static int help(FILE *to) {
        (void) fprintf(to, "Usage: gabion COMMAND [OPTIONS]\n\n"
                           "Runs code that nobody has reviewed, so that it can do its work and nothing else.\n\n");
        for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
                if (commands[i].name)
                        (void) fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].what);
                else
                        (void) fprintf(to, "%s\n", commands[i].what);
        (void) fprintf(to, "\nFirst steps:  gabion run -- python3 -c 'print(6*7)'\n"
                           "              gabion run --show-evidence -v .:/work:ro -w /work -- make test\n"
                           "              gabion doctor\n"
                           "'gabion COMMAND --help' tells more; so does 'man gabion'.\n");
        return to == stdout ? 0 : CLI_OWN_ERROR;
}

/* A caller may have closed our standard descriptors, or left others open to us: neither may reach a sandbox. */
static void descriptors_settle(void) {
        (void) sys_close_range(3, ~0u, 0);
        for (int fd = 0; fd < 3; fd++)
                if (fcntl(fd, F_GETFD) < 0)
                        (void) open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY); /* takes the lowest free number */
}

int main(int argc, char **argv) {
        const char *name = argc > 1 ? argv[1] : "";
        static const struct sigaction def = { .sa_handler = SIG_DFL };

        descriptors_settle();
        (void) sigaction(SIGCHLD, &def, NULL); /* ignored by the caller, it would take our children's status away */
        if (str_eq(name, "--version"))
                return cmd_version(argc, argv);
        if (str_eq(name, "help") || str_eq(name, "--help") || str_eq(name, "-h"))
                return help(stdout);
        for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
                if (commands[i].name && str_eq(commands[i].name, name))
                        return commands[i].fn(argc - 1, argv + 1);
        if (argc > 1)
                (void) fprintf(stderr, "gabion: unknown command '%.40s'\n\n", name);
        return help(stderr);
}
