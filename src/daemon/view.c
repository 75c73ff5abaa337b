/* view.c - see view.h. Members that the Python SDK insists on are always there. */
#include "daemon/view.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/box.h"
#include "daemon/daemon.h"
#include "daemon/found.h"
#include "daemon/request.h"
#include "json/json.h"

enum { MIB = 1024 * 1024 };

const char *view_state(enum store_state s) {
        static const char *const names[STORE_STATES] = { "creating", "running", "paused", "gone" };

        return (unsigned) s < STORE_STATES ? names[s] : "unknown";
}

static void set_time(struct json *o, const char *key, uint64_t ms) {
        char text[CLOCK_TEXT];

        clock_rfc3339_at(text, ms);
        json_set_str(o, key, text);
}

static void set_parsed(struct json *o, const char *key, const char *text) {
        struct json *v = NULL;
        struct err err;

        if (text && json_parse(key, text, strlen(text), &v, &err) == 0)
                json_set(o, key, v);
}

static void set_identity(struct json *o, const char *template, const char *id, const char *name) {
        json_set_str(o, "templateID", template);
        json_set_str(o, "alias", template);
        json_set_str(o, "sandboxID", id);
        json_set_str(o, "clientID", "gabion");
        json_set_str(o, "envdVersion", DAEMON_ENVD_VERSION);
        if (name[0])
                json_set_str(o, "name", name);
}

static void set_tokens(struct json *o, const struct daemon *d, const char *id, bool private_ports) {
        char token[AUTH_TOKEN];

        auth_token(d, "envd", id, token);
        json_set_str(o, "envdAccessToken", token);
        auth_token(d, "traffic", id, token);
        json_set_str(o, "trafficAccessToken", private_ports ? token : NULL);
}

static void set_domain(struct json *o, const struct daemon *d) {
        json_set_str(o, "domain", d->config.domain[0] ? d->config.domain : NULL);
}

struct json *view_sandbox(const struct daemon *d, const struct box *b) {
        struct json *o = json_new_object();

        set_identity(o, b->template, b->id, b->name);
        set_tokens(o, d, b->id, b->private_ports);
        set_domain(o, d);
        return o;
}

struct json *view_listed(const struct daemon *d, const struct store_sandbox *row) {
        struct json *o = json_new_object(), *why = found_why(box_any(d, row->id));

        set_identity(o, row->template, row->id, row->name);
        set_time(o, "startedAt", row->created_ms);
        set_time(o, "endAt", row->state == STORE_GONE ? row->ended_ms : row->ends_ms);
        json_set_int(o, "cpuCount", (row->cpu_milli + 999) / 1000);
        json_set_int(o, "memoryMB", (int64_t) (row->memory_bytes / MIB));
        json_set_int(o, "diskSizeMB", (int64_t) (row->disk_bytes / MIB));
        json_set_str(o, "state", view_state(row->state));
        set_parsed(o, "metadata", row->metadata);
        json_set(o, "volumeMounts", json_new_array());
        if (why)
                json_set(o, "frozen", why);
        return o;
}

static int copy_public(void *arg, const char *key, const struct json *value) {
        if (!str_eq(key, "allow_internet_access") && !str_eq(key, "egressProxy"))
                json_set(arg, key, json_share(value));
        return 0;
}

/* What the client asked for, and whether it said anything of the internet. */
static void set_network(struct json *o, const char *text, bool *ret_private) {
        CLEANUP(json_freep) struct json *stored = NULL;
        struct json *shown = json_new_object();
        struct err err;

        *ret_private = false;
        if (text && json_parse("network", text, strlen(text), &stored, &err) == 0) {
                *ret_private = !json_get_bool(stored, "allowPublicTraffic", true);
                (void) json_each(stored, copy_public, shown);
                json_set_bool(o, "allowInternetAccess", json_get_bool(stored, "allow_internet_access", true));
        }
        json_set(o, "network", shown);
}

struct json *view_detail(const struct request *q, const struct store_sandbox *row) {
        struct json *o = view_listed(q->d, row), *life = json_new_object();
        bool private_ports;

        set_network(o, row->network, &private_ports);
        if (row->state != STORE_GONE && auth_may(&q->auth, VERB_CONNECT))
                set_tokens(o, q->d, row->id, private_ports);
        set_domain(o, q->d);
        json_set_bool(life, "autoResume", false);
        json_set_str(life, "onTimeout", "kill");
        json_set(o, "lifecycle", life);
        return o;
}
