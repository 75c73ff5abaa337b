/* end.c - `gabion stop` and `gabion rm`: sandboxes end, with or without time for their commands. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "json/json.h"

enum { STOP_S = 10, NAP_MS = 100 };

struct words {
        bool all, kind; /* kind: commands are asked first */
        uint64_t timeout_s;
};

static int set(void *into, int key, const char *value) {
        struct words *w = into;
        struct err err = { 0 };

        if (key == REMOTE_ALL)
                w->all = true;
        else if (remote_seconds("timeout", value, &w->timeout_s, &err) < 0)
                return cli_fail(&err);
        return -1;
}

/* How many commands run, each of which is asked to end if `ask`; negative: nobody can tell. */
static int count_commands(struct remote *r, const struct client_box *box, bool ask, struct err *err) {
        struct client_reply list = { 0 };
        int n = client_rpc(r->client, box, "process.Process/List", NULL, json_new_object(), &list, err);
        const struct json *all = n == 0 ? json_get(list.body, "processes") : NULL;

        for (size_t i = 0; n == 0 && ask && i < json_len(all); i++) {
                struct json *message = json_new_object(), *who = json_new_object();
                struct client_reply ignored = { 0 };
                struct err gone = { 0 };

                json_set_int(who, "pid", json_get_int(json_at(all, i), "pid", 0));
                json_set(message, "process", who);
                json_set_str(message, "signal", "SIGNAL_SIGTERM");
                (void) client_rpc(r->client, box, "process.Process/SendSignal", NULL, message, &ignored, &gone);
                client_reply_done(&ignored);
        }
        if (n == 0)
                n = (int) json_len(all);
        client_reply_done(&list);
        return n;
}

static void let_end(struct remote *r, const char *name, uint64_t timeout_s) {
        static const struct timespec nap = { .tv_nsec = NAP_MS * 1000000L };
        uint64_t until = clock_mono_ns() + timeout_s * 1000000000;
        struct client_box box = { 0 };
        struct err err = { 0 };
        int n = client_box_find(r->client, name, &box, &err);

        if (n == 0)
                n = count_commands(r, &box, true, &err);
        while (n > 0 && clock_mono_ns() < until) {
                (void) nanosleep(&nap, NULL);
                n = count_commands(r, &box, false, &err);
        }
        if (n > 0)
                remote_warn("%s: %d command%s did not end in %u s, and will be killed", name, n, n == 1 ? "" : "s",
                            (unsigned) timeout_s);
}

static int end_one(struct remote *r, const struct words *w, const char *name, struct err *err) {
        char target[CLIENT_NAME_TEXT + 16];
        const struct client_request q = { .method = "DELETE", .target = target };
        struct client_reply reply = { 0 };
        int n;

        if (!client_is_name(name))
                return err_set(err, -EINVAL, ERR_INVALID, "'%.64s' is no id or name of a sandbox", name);
        if (w->kind)
                let_end(r, name, w->timeout_s);
        (void) snprintf(target, sizeof(target), "/sandboxes/%s", name);
        n = client_ask(r->client, &q, &reply, err);
        client_reply_done(&reply);
        if (n == 0)
                (void) puts(name);
        return n;
}

static int end_some(struct remote *r, const struct words *w, int argc, char **argv) {
        CLEANUP(json_freep) struct json *all = NULL;
        struct err err = { 0 };
        int code = 0;

        for (int i = 0; i < argc; i++)
                if (end_one(r, w, argv[i], &err) < 0)
                        code = cli_fail(&err);
        if (w->all && boxes_list(r, "", false, &all, &err) < 0)
                return cli_fail(&err);
        for (size_t i = 0; i < json_len(all); i++) {
                const char *id = json_get_str(json_at(all, i), "sandboxID");

                if (id && end_one(r, w, id, &err) < 0 && err.kind != ERR_NOT_FOUND)
                        code = cli_fail(&err);
        }
        return code;
}

static int end(struct remote *r, struct words w, int argc, char **argv) {
        struct err err = { 0 };
        int at = 0, code = remote_options_mixed(r, argc, argv, &at, set, &w);

        if (code >= 0)
                return code;
        if ((at < argc) == w.all)
                return cli_usage(r->verb->name,
                                 w.all ? "--all needs no names" : "the id or name of a sandbox is expected");
        return remote_open(r, &err) < 0 ? cli_fail(&err) : end_some(r, &w, argc - at, argv + at);
}

int remote_stop(struct remote *r, int argc, char **argv) {
        return end(r, (struct words){ .kind = true, .timeout_s = STOP_S }, argc, argv);
}

int remote_rm(struct remote *r, int argc, char **argv) {
        return end(r, (struct words){ 0 }, argc, argv);
}
