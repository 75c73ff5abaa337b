/* inspect.c - `gabion inspect`: what the server knows of sandboxes, in one JSON document. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "json/json.h"

static int set(void *into, int key, const char *value) {
        (void) key, (void) value;
        *(bool *) into = true;
        return -1;
}

static bool is_token(const char *key) {
        static const char *const tokens[] = { "envdAccessToken", "trafficAccessToken" };

        for (size_t i = 0; i < ARRAY_SIZE(tokens); i++)
                if (strcmp(tokens[i], key) == 0)
                        return true;
        return false;
}

static int keep(void *arg, const char *key, const struct json *value) {
        if (!is_token(key))
                json_set(arg, key, json_share(value));
        return 0;
}

/* A part of the document that a key may not be allowed to see: then it is left out. */
static int add_part(struct remote *r, struct json *doc, const char *name, const char *part, struct err *err) {
        struct client_reply reply = { 0 };
        char target[CLIENT_NAME_TEXT + 48];
        int n;

        (void) snprintf(target, sizeof(target), "/gabion/v1/sandboxes/%s/%s", name, part);
        n = remote_get(r, target, &reply, err);
        if (n == 0)
                json_set(doc, part, json_share(reply.body));
        client_reply_done(&reply);
        return n < 0 && err->kind != ERR_DENIED && err->kind != ERR_NOT_FOUND && err->kind != ERR_BUSY ? n : 0;
}

static int inspect(struct remote *r, const char *name, bool tokens, struct json **ret, struct err *err) {
        CLEANUP(json_freep) struct json *doc = json_new_object();
        char target[CLIENT_NAME_TEXT + 16];
        struct client_reply reply = { 0 };
        struct err ignored = { 0 };
        int n;

        if (!client_is_name(name))
                return err_set(err, -EINVAL, ERR_INVALID, "'%.64s' is no id or name of a sandbox", name);
        (void) snprintf(target, sizeof(target), "/sandboxes/%s", name);
        n = remote_get(r, target, &reply, err);
        if (n == 0 && tokens) {
                (void) json_free(doc);
                doc = json_clone(reply.body);
        } else if (n == 0) {
                (void) json_each(reply.body, keep, doc);
        } else if (reply.status == 404 && json_get(reply.body, "sandbox")) {
                (void) json_free(doc);
                doc = json_clone(json_get(reply.body, "sandbox")); /* it has ended, and this is what is left */
                n = 0;
        }
        client_reply_done(&reply);
        if (n == 0)
                n = add_part(r, doc, name, "usage", &ignored);
        if (n == 0)
                n = add_part(r, doc, name, "policy", &ignored);
        if (n == 0)
                *ret = TAKE_PTR(doc);
        else if (!err->code)
                *err = ignored;
        return n;
}

int remote_inspect(struct remote *r, int argc, char **argv) {
        CLEANUP(json_freep) struct json *all = json_new_array();
        bool tokens = false;
        struct err err = { 0 };
        int at = 0, code = remote_options_mixed(r, argc, argv, &at, set, &tokens);

        if (code >= 0)
                return code;
        if (at == argc)
                return cli_usage("inspect", "the id or name of a sandbox is expected");
        if (remote_open(r, &err) < 0)
                return cli_fail(&err);
        code = 0;
        for (int i = at; i < argc; i++) {
                struct json *one = NULL;

                err = (struct err){ 0 };
                if (inspect(r, argv[i], tokens, &one, &err) < 0)
                        code = cli_fail(&err);
                else
                        json_add(all, one);
        }
        if (json_len(all) == 0)
                return code;
        if (remote_print_json(argc - at == 1 ? json_at(all, 0) : all, true, &err) < 0)
                return cli_fail(&err);
        return code;
}
