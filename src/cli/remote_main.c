/*
 * remote_main.c - gabion-client: `gabion create, exec, ...` become this program. It is dynamic, because it has TLS and
 * looks names up, and `gabion run` must not pay for that (docs/decisions/025-client.md).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/remote.h"

static const struct {
        const char *name;
        int (*fn)(struct remote *r, int argc, char **argv);
} commands[] = {
        { "create", remote_create },   { "exec", remote_exec }, { "shell", remote_shell }, { "ps", remote_ps },
        { "top", remote_top },         { "logs", remote_logs }, { "cp", remote_cp },       { "port", remote_port },
        { "inspect", remote_inspect }, { "stop", remote_stop }, { "rm", remote_rm },
};

int main(int argc, char **argv) {
        static const struct sigaction ignored = { .sa_handler = SIG_IGN };
        const char *name = argc > 1 ? argv[1] : "";
        struct remote r = { 0 };
        int code = CLI_OWN_ERROR;

        for (int fd = 0; fd < 3; fd++)
                if (fcntl(fd, F_GETFD) < 0)
                        (void) open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY); /* takes the lowest free number */
        (void) sigaction(SIGPIPE, &ignored, NULL);                               /* OpenSSL writes with write() */
        for (size_t i = 0; i < remote_n_verbs; i++)
                if (str_eq(remote_verbs[i].name, name))
                        r.verb = &remote_verbs[i];
        for (size_t i = 0; r.verb && i < ARRAY_SIZE(commands); i++)
                if (str_eq(commands[i].name, name))
                        code = commands[i].fn(&r, argc - 1, argv + 1);
        if (!r.verb)
                (void) fprintf(stderr, "gabion-client: started by gabion, for create, exec, ps and the like\n");
        r.client = client_free(r.client);
        if (fflush(stdout) != 0 && code == 0) {
                (void) fprintf(stderr, "gabion: standard output: it cannot be written\n");
                code = CLI_OWN_ERROR;
        }
        return code;
}
