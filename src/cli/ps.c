/* ps.c - `gabion ps`: the sandboxes that live. */
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "json/json.h"

enum { FILTER_MAX = 6144 };

struct words {
        bool quiet, names;
        struct json *metadata;
        const char *template;
};

static int set(void *into, int key, const char *value) {
        struct words *w = into;

        if (key == 'q')
                w->quiet = true;
        else if (key == REMOTE_NAMES)
                w->names = true;
        else if (key == REMOTE_TEMPLATE)
                w->template = value;
        else if (!remote_pair(w->metadata, value, false))
                return cli_usage("ps", "--metadata '%.40s': NAME=VALUE is expected", value);
        return -1;
}

/* Each name and value encoded by itself, then as a form, then as the value of a query: three deep, as E2B has it. */
static int add_pair(void *arg, const char *key, const struct json *value) {
        const char *const texts[] = { key, json_str(value) };
        struct buf *form = arg;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                struct buf once = BUF_INIT(FILTER_MAX), twice = BUF_INIT(FILTER_MAX);

                client_query_add(&once, "", texts[i]);
                client_query_add(&twice, "", once.len > 2 ? buf_str(&once) + 2 : "");
                buf_addf(form, "%s%s",
                         i == 1          ? "="
                         : form->len > 0 ? "&"
                                         : "",
                         twice.len > 2 ? buf_str(&twice) + 2 : "");
                buf_done(&once);
                buf_done(&twice);
        }
        return 0;
}

static int list(struct remote *r, const struct words *w, struct json **ret, struct err *err) {
        struct buf filter = BUF_INIT(FILTER_MAX), form = BUF_INIT(FILTER_MAX);
        int n;

        buf_addf(&filter, "?"); /* so that what follows begins with '&' */
        if (w->template)
                client_query_add(&filter, "template", w->template);
        (void) json_each(w->metadata, add_pair, &form);
        if (form.len > 0)
                client_query_add(&filter, "metadata", buf_str(&form));
        n = boxes_list(r, buf_str(&filter) + 1, !w->quiet && !w->names, ret, err);
        buf_done(&filter);
        buf_done(&form);
        return n;
}

static void print_ids(const struct json *all, bool names) {
        for (size_t i = 0; i < json_len(all); i++) {
                const char *id = json_get_str(json_at(all, i), "sandboxID"),
                           *name = json_get_str(json_at(all, i), "name");

                remote_print(names && name ? name : id ? id : "");
                (void) putchar('\n');
        }
}

int remote_ps(struct remote *r, int argc, char **argv) {
        CLEANUP(json_freep) struct json *metadata = json_new_object(), *all = NULL;
        struct words w = { .metadata = metadata };
        struct err err = { 0 };
        int at = 0, code = remote_options_mixed(r, argc, argv, &at, set, &w);

        if (code >= 0)
                return code;
        if (at < argc)
                return cli_usage("ps", "'%.40s' is no option", argv[at]);
        if (remote_open(r, &err) < 0 || list(r, &w, &all, &err) < 0)
                return cli_fail(&err);
        if (r->json)
                return remote_print_json(all, true, &err) < 0 ? cli_fail(&err) : 0;
        if (w.quiet || w.names)
                print_ids(all, w.names);
        else
                (void) boxes_print(all, false);
        return 0;
}
