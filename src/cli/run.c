/* run.c - `gabion run`: one command, one sandbox, the command's exit code. */
#include "run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "cli/cli.h"
#include "json/json.h"

/* Opened before anything runs: a path that cannot be written must not cost the result. */
static int result_open(const char *path, int *ret, struct err *err) {
        enum { OUT_OF_THE_WAY = 16 }; /* of the numbers that a sandbox's agent inherits */
        AUTO_FD int fd = -1;

        *ret = STDOUT_FILENO;
        if (!path[0])
                return 0;
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0)
                return err_set(err, -errno, ERR_INVALID, "--json=%.150s: %s", path, strerror(errno));
        *ret = fcntl(fd, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
        return *ret < 0 ? err_set(err, -errno, ERR_INTERNAL, "--json: %s", strerror(errno)) : 0;
}

static int result_print(const struct run_result *res, int fd, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *text = NULL;
        int r = run_result_json(res, &doc, err);

        if (r == 0)
                r = json_text(doc, false, &text, err);
        if (r == 0 && fd == STDOUT_FILENO && res->stdout_mid_line) /* the result is a line of its own */
                (void) fd_write_all(fd, "\n", 1);
        if (r == 0 && (fd_write_all(fd, text, strlen(text)) < 0 || fd_write_all(fd, "\n", 1) < 0))
                r = err_set(err, -EIO, ERR_INTERNAL, "--json: the result cannot be written");
        return r;
}

int cmd_run(int argc, char **argv) {
        static struct run_result res;
        struct run_options o;
        struct err err = { 0 };
        const char *json;
        int fd = -1, r = cli_run_options(argc, argv, &o, &json);

        if (r != -1)
                return r;
        o.last = !json;
        o.agent = gabion_agent_image;
        o.agent_bytes = gabion_agent_image_size;
        if ((json && result_open(json, &fd, &err) < 0) || run_command(&o, &res, &err) < 0)
                return cli_fail(&err);
        if (json && result_print(&res, fd, &err) < 0)
                return cli_fail(&err);
        return res.exit_code;
}
