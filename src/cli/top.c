/* top.c - `gabion top`: what sandboxes use, again and again; plain text, so that it can be piped and kept. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "json/json.h"

struct words {
        bool once;
        uint64_t interval_s;
};

static int set(void *into, int key, const char *value) {
        struct words *w = into;
        struct err err = { 0 };

        if (key == REMOTE_ONCE)
                w->once = true;
        else if (remote_seconds("interval", value, &w->interval_s, &err) < 0)
                return cli_fail(&err);
        return -1;
}

/* "3 sandboxes of 20, memory 1.5G of 8G": what the tenant has of what it may have. */
static void print_sum(const char *what, const struct json *used, const struct json *limits, const char *key,
                      bool bytes) {
        int64_t n = json_get_int(used, key, 0), of = json_get_int(limits, key, -1);
        char a[TABLE_CELL], b[TABLE_CELL];

        (void) snprintf(a, sizeof(a), "%" PRId64, n);
        (void) snprintf(b, sizeof(b), "%" PRId64, of);
        if (bytes) {
                text_size(a, (uint64_t) (n > 0 ? n : 0));
                text_size(b, (uint64_t) (of > 0 ? of : 0));
        }
        (void) printf("   %s %s%s%s", what, a, of >= 0 ? "/" : "", of >= 0 ? b : "");
}

static void print_head(const struct json *capacity) {
        const struct json *tenant = json_get(capacity, "tenant"), *machine = json_get(capacity, "machine");
        const struct json *used = json_get(tenant, "used"), *limits = json_get(tenant, "limits");
        char now[CLOCK_TEXT];

        clock_rfc3339(now);
        (void) printf("%s", now);
        print_sum("sandboxes", used, limits, "sandboxes", false);
        print_sum("memory", used, limits, "memory_bytes", true);
        print_sum("disk", used, limits, "disk_bytes", true);
        if (machine) {
                print_sum("| machine", json_get(machine, "used"), json_get(machine, "limits"), "sandboxes", false);
                print_sum("free", machine, NULL, "memory_available_bytes", true);
        }
        (void) printf("%s\n\n", json_get_bool(capacity, "accepting", true) ? "" : "   NOT ACCEPTING");
}

static int look(struct remote *r, struct err *err) {
        CLEANUP(json_freep) struct json *all = NULL, *doc = NULL;
        struct client_reply capacity = { 0 };
        int n = boxes_list(r, "", true, &all, err);

        if (n == 0)
                n = remote_get(r, "/gabion/v1/capacity", &capacity, err);
        if (n == 0 && r->json) {
                doc = json_new_object();
                json_set(doc, "capacity", json_share(capacity.body));
                json_set(doc, "sandboxes", json_share(all));
                n = remote_print_json(doc, false, err);
        } else if (n == 0) {
                if (isatty(STDOUT_FILENO))
                        (void) printf("\033[H\033[2J");
                print_head(capacity.body);
                (void) boxes_print(all, true);
        }
        client_reply_done(&capacity);
        return n;
}

int remote_top(struct remote *r, int argc, char **argv) {
        struct words w = { .interval_s = 2 };
        struct err err = { 0 };
        int at = 0, code = remote_options_mixed(r, argc, argv, &at, set, &w);

        if (code >= 0)
                return code;
        if (at < argc)
                return cli_usage("top", "'%.40s' is no option", argv[at]);
        if (remote_open(r, &err) < 0)
                return cli_fail(&err);
        for (;;) {
                struct timespec nap = { .tv_sec = (time_t) w.interval_s };

                if (look(r, &err) < 0)
                        return cli_fail(&err);
                if (fflush(stdout) != 0)
                        return 0; /* whoever read it has gone */
                if (w.once)
                        return 0;
                (void) nanosleep(&nap, NULL);
                if (!r->json && !isatty(STDOUT_FILENO))
                        (void) putchar('\n');
        }
}
