/* cp.c - `gabion cp`: which side is the sandbox, and where exactly things go. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/copy.h"
#include "client/process.h"
#include "json/json.h"

enum { CHMOD_BATCH = 64 };

static int set(void *into, int key, const char *value) {
        struct copy *c = into;

        if (key == 'u')
                c->user = value;
        else if (key == 'L')
                c->follow_links = true;
        return -1;
}

const char *copy_name(const char *path, char dst[COPY_PATH]) {
        size_t n = strlen(path), first;

        while (n > 0 && path[n - 1] == '/')
                n--;
        for (first = n; first > 0 && path[first - 1] != '/';)
                first--;
        if (n - first >= COPY_PATH)
                n = first;
        memcpy(dst, path + first, n - first);
        dst[n - first] = '\0';
        if (str_eq(dst, ".") || str_eq(dst, ".."))
                dst[0] = '\0';
        return dst;
}

int copy_join(char dst[COPY_PATH], const char *dir, const char *name, struct err *err) {
        size_t n = strlen(dir);
        int k = snprintf(dst, COPY_PATH, "%s%s%s", dir, n > 0 && dir[n - 1] != '/' ? "/" : "", name);

        return k >= COPY_PATH ? err_set(err, -ENAMETOOLONG, ERR_INVALID, "%.100s/...: the path is too long", dir) : 0;
}

int copy_look(struct copy *c, const char *path, enum copy_kind *ret, mode_t *ret_mode, struct err *err) {
        struct client_reply reply = { 0 };
        struct json *message = json_new_object(), *entry;
        const char *type;
        int r;

        *ret = COPY_NONE;
        json_set_str(message, "path", path);
        r = client_rpc(c->remote->client, &c->box, "filesystem.Filesystem/Stat", c->user, message, &reply, err);
        entry = r == 0 ? json_get(reply.body, "entry") : NULL;
        type = entry ? json_get_str(entry, "type") : NULL;
        if (type)
                *ret = str_eq(type, "FILE_TYPE_DIRECTORY") ? COPY_DIRECTORY
                       : str_eq(type, "FILE_TYPE_FILE")    ? COPY_FILE
                                                           : COPY_OTHER;
        *ret_mode = (mode_t) (entry ? json_get_int(entry, "mode", 0644) : 0);
        if (r < 0 && reply.status == 404)
                r = 0;
        client_reply_done(&reply);
        return r;
}

/* SANDBOX:PATH; NULL: a path of this machine. */
static const char *remote_path(const char *word, char name[CLIENT_NAME_TEXT]) {
        const char *colon = strchr(word, ':');
        size_t n = colon ? (size_t) (colon - word) : 0;

        if (n == 0 || n >= CLIENT_NAME_TEXT)
                return NULL;
        memcpy(name, word, n);
        name[n] = '\0';
        return client_is_name(name) ? colon + 1 : NULL;
}

/* The place itself, or below it if it is a directory: as cp(1) does. */
static int target_of(char dst[COPY_PATH], const char *to, bool is_directory, bool must, const char *from,
                     struct err *err) {
        char name[COPY_PATH];
        size_t n = strlen(to);
        bool below = is_directory || (n > 0 && to[n - 1] == '/');

        if (must && !below)
                return err_set(err, -ENOTDIR, ERR_INVALID, "%.100s: is no directory, and there are several sources",
                               to);
        if (!below)
                return copy_join(dst, "", to, err);
        if (!*copy_name(from, name) || str_eq(from, "-"))
                return err_set(err, -EINVAL, ERR_INVALID, "%.100s: has no name to have below %.100s", from, to);
        return copy_join(dst, to, name, err);
}

static void on_output(enum client_stream stream, struct evbuffer *bytes, void *data) {
        (void) stream, (void) data;
        (void) evbuffer_drain(bytes, SIZE_MAX);
}

static void on_note(const char *text, void *data) {
        (void) text, (void) data;
}

static void on_end(const struct client_exit *exit, const struct err *err, void *data) {
        *(int *) data = err || exit->code != 0 ? -1 : 1;
}

/* The API has no modes, but a script that was copied should run. */
static void make_executable(struct copy *c) {
        for (size_t at = 0; at < json_len(c->executable); at += CHMOD_BATCH) {
                const char *argv[CHMOD_BATCH + 4] = { "chmod", "u+x", "--" };
                int done = 0;
                struct client_process_config config = { .user = c->user,
                                                        .argv = argv,
                                                        .on_output = on_output,
                                                        .on_note = on_note,
                                                        .on_end = on_end,
                                                        .data = &done };
                struct client_process *p = NULL;
                struct err err = { 0 };

                for (size_t i = at; i < json_len(c->executable) && i < at + CHMOD_BATCH; i++)
                        argv[3 + i - at] = json_str(json_at(c->executable, i));
                if (client_process_new(c->remote->client, &c->box, &config, &p, &err) < 0)
                        done = -1;
                while (!done && event_base_loop(client_base(c->remote->client), EVLOOP_ONCE) >= 0)
                        ;
                p = client_process_free(p);
                if (done < 0)
                        remote_warn("%s and perhaps others could not be made executable", argv[3]);
        }
}

static int copy_all_up(struct copy *c, int n, char **from, const char *to, struct err *err) {
        CLEANUP(json_freep) struct json *executable = json_new_array();
        char place[COPY_PATH];
        enum copy_kind kind;
        mode_t mode;
        int r = copy_look(c, *to ? to : ".", &kind, &mode, err);

        c->executable = executable;
        for (int i = 0; r == 0 && i < n; i++) {
                r = target_of(place, *to ? to : ".", kind == COPY_DIRECTORY, n > 1, from[i], err);
                if (r == 0)
                        r = copy_up(c, from[i], place, err);
        }
        make_executable(c);
        return r;
}

static int copy_one_down(struct copy *c, const char *from, const char *to, struct err *err) {
        char place[COPY_PATH];
        struct stat st;
        int r;

        if (str_eq(to, "-"))
                return copy_down(c, from, to, err);
        r = target_of(place, to, stat(to, &st) == 0 && S_ISDIR(st.st_mode), false, from, err);
        return r < 0 ? r : copy_down(c, from, place, err);
}

int remote_cp(struct remote *r, int argc, char **argv) {
        char name[CLIENT_NAME_TEXT], other[CLIENT_NAME_TEXT];
        const char *up = NULL, *down = NULL;
        struct copy c = { .remote = r };
        struct err err = { 0 };
        int at = 0, n, code = remote_options_mixed(r, argc, argv, &at, set, &c);

        if (code >= 0)
                return code;
        n = argc - at;
        if (n < 2)
                return cli_usage("cp", "a source and a target are expected");
        up = remote_path(argv[argc - 1], name);
        for (int i = at; i < argc - 1; i++)
                if (remote_path(argv[i], other))
                        down = argv[i];
        if (down && up)
                return cli_usage("cp", "one side must be on this machine");
        if (!down && !up)
                return cli_usage("cp", "neither side is a sandbox: SANDBOX:PATH is expected");
        if (down && n > 2)
                return cli_usage("cp", "one source at a time can be copied from a sandbox");
        if (down)
                down = remote_path(down, name);
        if (remote_open(r, &err) < 0 || client_box_find(r->client, name, &c.box, &err) < 0)
                return cli_fail(&err);
        if (up ? copy_all_up(&c, n - 1, argv + at, up, &err) < 0
               : copy_one_down(&c, *down ? down : ".", argv[argc - 1], &err) < 0)
                return cli_fail(&err);
        if (c.left_out > 0)
                remote_warn("%u %s left out", c.left_out, c.left_out == 1 ? "entry was" : "entries were");
        return 0;
}
