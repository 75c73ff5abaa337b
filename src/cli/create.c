/* create.c - `gabion create`: one sandbox on the server. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "json/json.h"

enum { HOUR_S = 3600 };

struct words {
        const char *name, *template;
        uint64_t timeout_s;
        bool internet, private_ports;
        struct json *env, *metadata, *allow, *deny;
};

static int set_net(struct words *w, const char *value) {
        w->internet = str_eq(value, "public");
        if (w->internet || str_eq(value, "none"))
                return -1;
        return cli_usage("create", "--net '%.40s': none or public is expected; --allow opens single places", value);
}

static int set(void *into, int key, const char *value) {
        struct words *w = into;
        struct err err = { 0 };

        switch (key) {
        case REMOTE_NAME:
                w->name = value;
                break;
        case REMOTE_TEMPLATE:
                w->template = value;
                break;
        case REMOTE_TIMEOUT:
                return remote_seconds("timeout", value, &w->timeout_s, &err) < 0 ? cli_fail(&err) : -1;
        case 'e':
                if (!remote_pair(w->env, value, true))
                        return cli_usage("create", "-e '%.40s': NAME=VALUE or NAME is expected", value);
                break;
        case REMOTE_METADATA:
                if (!remote_pair(w->metadata, value, false))
                        return cli_usage("create", "--metadata '%.40s': NAME=VALUE is expected", value);
                break;
        case REMOTE_NET:
                return set_net(w, value);
        case REMOTE_ALLOW:
                json_add_str(w->allow, value);
                break;
        case REMOTE_DENY:
                json_add_str(w->deny, value);
                break;
        default:
                w->private_ports = true;
                break;
        }
        return -1;
}

static struct json *body_of(const struct words *w) {
        struct json *o = json_new_object(), *network = json_new_object();

        json_set_str(o, "templateID", w->template);
        json_set_int(o, "timeout", (int64_t) w->timeout_s);
        if (w->name)
                json_set_str(o, "name", w->name);
        if (json_len(w->env) > 0)
                json_set(o, "envVars", json_share(w->env));
        if (json_len(w->metadata) > 0)
                json_set(o, "metadata", json_share(w->metadata));
        json_set_bool(o, "allow_internet_access", w->internet);
        if (json_len(w->allow) > 0)
                json_set(network, "allowOut", json_share(w->allow));
        if (json_len(w->deny) > 0)
                json_set(network, "denyOut", json_share(w->deny));
        if (w->private_ports)
                json_set_bool(network, "allowPublicTraffic", false);
        json_set(o, "network", network);
        return o;
}

static int create(struct remote *r, const struct words *w, struct err *err) {
        CLEANUP(json_freep) struct json *body = body_of(w);
        struct client_request q = { .method = "POST", .target = "/v2/sandboxes" };
        struct client_reply reply = { 0 };
        AUTO_FREE char *text = NULL;
        const char *id;
        int n = json_text(body, false, &text, err);

        q.text = text;
        if (n == 0)
                n = client_ask(r->client, &q, &reply, err);
        id = n == 0 ? json_get_str(reply.body, "sandboxID") : NULL;
        if (n == 0 && r->json) {
                n = remote_print_json(reply.body, true, err);
        } else if (n == 0) {
                remote_print(id ? id : "");
                (void) putchar('\n');
        }
        client_reply_done(&reply);
        return n;
}

int remote_create(struct remote *r, int argc, char **argv) {
        CLEANUP(json_freep)
        struct json *env = json_new_object(), *metadata = json_new_object(), *allow = json_new_array(),
                    *deny = json_new_array();
        struct words w = {
                .template = "base", .timeout_s = HOUR_S, .env = env, .metadata = metadata, .allow = allow, .deny = deny
        };
        struct err err = { 0 };
        int at = 0, code = remote_options_mixed(r, argc, argv, &at, set, &w);

        if (code >= 0)
                return code;
        if (at < argc)
                return cli_usage("create", "'%.40s' is no option", argv[at]);
        if (remote_open(r, &err) < 0 || create(r, &w, &err) < 0)
                return cli_fail(&err);
        return 0;
}
