/* explain.c - `gabion policy explain`: would this connection be allowed, and by which rule. Asks the same function that
 * egress asks; resolves nothing and connects nowhere. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "json/json.h"
#include "policy/net.h"
#include "policy/net_flags.h"
#include "policy/policy.h"

enum { DENIED = 1, ALLOW_FLAGS = 64 };

struct words {
        const char *host, *port, *method, *path, *address, *policy, *net, *ceiling;
        const char *allow[ALLOW_FLAGS];
        size_t n_allow;
        const char *resolve[POLICY_NET_RESOLVE];
        size_t n_resolve;
        bool json;
};

/* What is asked, with the storage that the request points to. */
struct question {
        struct policy_net_request q;
        char name[HOST_NAME];
        struct addr address;
        uint64_t port;
        bool is_literal;
};

static int help(void) {
        (void) printf(
                "Usage: gabion policy explain --host HOST [--port PORT] [--method METHOD] [--path PATH] [OPTIONS]\n\n"
                "  --host HOST           a name or an address\n"
                "  --port PORT           without it: may the name be resolved at all\n"
                "  --method METHOD       a request (default GET if there is a path)\n"
                "  --path PATH           its path (default / if there is a method)\n"
                "  --address ADDRESS     what the name resolves to; otherwise it is not judged\n"
                "  --policy FILE         the sandbox's policy (default: no network)\n"
                "  --net none|packages|public|FILE, --allow HOST[:PORT], --resolve NAME:PORT=ADDRESS:PORT\n"
                "                        as for gabion run\n"
                "  --ceiling FILE        the operator's ceiling, which must allow it as well\n"
                "  --json                print JSON\n\n"
                "Exit code: 0 allowed, 1 denied, 125 error.\n");
        return 0;
}

static int words_read(int argc, char **argv, struct words *w) {
        static const struct option longs[] = {
                { "host", 1, NULL, 'H' },
                { "port", 1, NULL, 'p' },
                { "method", 1, NULL, 'm' },
                { "path", 1, NULL, 'P' },
                { "address", 1, NULL, 'a' },
                { "policy", 1, NULL, 'f' },
                { "net", 1, NULL, 'n' },
                { "allow", 1, NULL, 'A' },
                { "resolve", 1, NULL, 'r' },
                { "ceiling", 1, NULL, 'c' },
                { "json", 0, NULL, 'j' },
                { "help", 0, NULL, 'h' },
                { 0 },
        };
        const struct {
                int key;
                const char **at;
        } texts[] = { { 'H', &w->host },    { 'p', &w->port },   { 'm', &w->method }, { 'P', &w->path },
                      { 'a', &w->address }, { 'f', &w->policy }, { 'n', &w->net },    { 'c', &w->ceiling } };
        int key;

        opterr = 0;
        optind = 1;
        while ((key = getopt_long(argc, argv, "+:h", longs, NULL)) != -1) {
                if (key == 'h')
                        return help();
                if (key == ':')
                        return cli_usage("policy explain", "option '%.40s' needs a value", argv[optind - 1]);
                if (key == '?')
                        return cli_usage("policy explain", "unknown option '%.40s'", argv[optind - 1]);
                if (key == 'A' && w->n_allow == ALLOW_FLAGS)
                        return cli_usage("policy explain", "--allow: at most %d", ALLOW_FLAGS);
                if (key == 'r' && w->n_resolve == POLICY_NET_RESOLVE)
                        return cli_usage("policy explain", "--resolve: at most %d", POLICY_NET_RESOLVE);
                if (key == 'A')
                        w->allow[w->n_allow++] = optarg;
                if (key == 'r')
                        w->resolve[w->n_resolve++] = optarg;
                w->json = w->json || key == 'j';
                for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                        if (texts[i].key == key)
                                *texts[i].at = optarg;
        }
        if (optind < argc)
                return cli_usage("policy explain", "'%.40s' is not expected", argv[optind]);
        return -1;
}

static int question_of(const struct words *w, struct question *ret, struct err *err) {
        if (!w->host)
                return err_set(err, -EINVAL, ERR_INVALID, "--host is missing");
        ret->is_literal = addr_parse(w->host, &ret->address) == 0;
        if (!ret->is_literal && host_canonical(w->host, strlen(w->host), ret->name) < 0)
                return err_set(err, -EINVAL, ERR_INVALID,
                               "--host '%.60s': not a host name or address; names beyond ASCII are written as xn--",
                               w->host);
        if (w->address && (ret->is_literal || addr_parse(w->address, &ret->address) < 0))
                return err_set(err, -EINVAL, ERR_INVALID, "--address '%.60s': an address of a named host is expected",
                               w->address);
        if (w->port && (str_to_u64(w->port, UINT16_MAX, &ret->port) < 0 || ret->port == 0))
                return err_set(err, -EINVAL, ERR_INVALID, "--port '%.40s': 1 to 65535 is expected", w->port);
        if (!w->port && (ret->is_literal || w->address || w->method || w->path))
                return err_set(err, -EINVAL, ERR_INVALID, "--port is missing");
        ret->q = (struct policy_net_request){
                .stage = POLICY_NET_NAME,
                .name = ret->is_literal ? NULL : ret->name,
                .port = (uint16_t) ret->port,
                .address = ret->is_literal || w->address ? &ret->address : NULL,
        };
        if (w->port)
                ret->q.stage = ret->q.address ? POLICY_NET_ADDRESS : POLICY_NET_CONNECT;
        if (w->method || w->path) {
                ret->q.stage = POLICY_NET_HTTP;
                ret->q.method = w->method ? w->method : "GET";
                ret->q.path = w->path ? w->path : "/";
        }
        return 0;
}

/* The policies and their egress document, as run would have them. */
static int policies_read(const struct words *w, struct policy *p, struct policy *ceiling, struct policy_egress **ret,
                         struct err *err) {
        static struct policy_resolve resolve[POLICY_NET_RESOLVE];
        int r = 0;

        policy_default(p);
        policy_default(ceiling);
        if (w->policy)
                r = policy_read_file(w->policy, p, err);
        if (r == 0 && w->net)
                r = policy_net_flag_net(p, w->net, err);
        for (size_t i = 0; r == 0 && i < w->n_allow; i++)
                r = policy_net_flag_allow(p, w->allow[i], err);
        for (size_t i = 0; r == 0 && i < w->n_resolve; i++)
                r = policy_net_flag_resolve(w->resolve[i], &resolve[i], err);
        if (r == 0 && w->ceiling)
                r = policy_read_ceiling(w->ceiling, ceiling, err);
        if (r == 0)
                r = cli_policy_expand(p, err);
        if (r == 0)
                r = cli_policy_expand(ceiling, err);
        return r < 0 ? r : policy_egress_new(p, w->ceiling ? ceiling : NULL, resolve, w->n_resolve, ret, err);
}

/* With --resolve the address is known beforehand. */
static void question_resolve(struct question *x, const struct policy_egress *e) {
        const struct policy_resolve *to = NULL;

        if (x->q.name && x->q.port > 0 && !x->q.address)
                to = policy_egress_resolve(e, x->q.name, x->q.port);
        if (!to)
                return;
        x->q.address = &to->address;
        if (x->q.stage == POLICY_NET_CONNECT)
                x->q.stage = POLICY_NET_ADDRESS;
}

/* The rule behind "allow[2]", "ceiling:deny[0]"; NULL for "default" and the floor. The caller frees it. */
static struct json *rule_of(const struct policy *p, const struct policy *ceiling, const char *text) {
        bool above = str_has_prefix(text, "ceiling:");
        CLEANUP(json_freep) struct json *net = policy_net_json(above ? ceiling : p);
        const char *name = text + (above ? strlen("ceiling:") : 0);
        char list[16], number[16], *copy = NULL;
        struct json *rule = NULL;
        size_t n = strcspn(name, "[");
        struct err err;
        uint64_t i = 0;

        if (!name[n] || n >= sizeof(list))
                return NULL;
        (void) snprintf(list, sizeof(list), "%.*s", (int) n, name);
        (void) snprintf(number, sizeof(number), "%.*s", (int) strcspn(name + n + 1, "]"), name + n + 1);
        if (str_to_u64(number, POLICY_NET_RULES, &i) < 0 ||
            json_text(json_at(json_get(net, list), i), false, &copy, &err) < 0)
                return NULL;
        (void) json_parse("rule", copy, strlen(copy), &rule, &err);
        free(copy);
        return rule;
}

static void what_text(const struct question *x, char dst[HOST_NAME + 80]) {
        char name[HOST_NAME];

        if (x->is_literal)
                addr_text(&x->address, name);
        else
                (void) str_copy(name, sizeof(name), x->name);
        if (x->port == 0)
                (void) snprintf(dst, HOST_NAME + 80, "%s", name);
        else
                (void) snprintf(dst, HOST_NAME + 80,
                                x->address.family == ADDR_V6 && x->is_literal ? "[%s]:%u" : "%s:%u", name,
                                (unsigned) x->port);
}

static struct json *answer(const struct question *x, const struct policy_net_verdict *v,
                           const struct policy_egress *e) {
        struct json *j = json_new_object();
        char what[HOST_NAME + 80];

        what_text(x, what);
        json_set_str(j, "what", what);
        json_set_bool(j, "allowed", v->allowed);
        json_set_str(j, "code", v->allowed ? NULL : v->code);
        json_set_str(j, "rule", v->rule);
        json_set_str(j, "side", policy_net_side_name(v->side));
        json_set_str(j, "ceiling_rule", *v->ceiling_rule ? v->ceiling_rule : NULL);
        json_set_bool(j, "judges_requests", v->needs_http);
        json_set_bool(j, "address_judged", x->q.address);
        json_set_str(j, "policy", e->policy_hash);
        return j;
}

/* Presets never work in silence: which one stands behind the answer, and where it was configured. */
static void print_preset(const struct policy *p, const struct policy_net_verdict *v, const struct json *rule) {
        char of[HOST_NAME + 32], port[16] = "";

        if (v->allowed && policy_net_is_public(p) && str_eq(v->rule, "default"))
                (void) printf("  preset public: whatever is not denied and has a public address\n");
        if (!v->allowed || !rule || !json_get_str(rule, "host"))
                return;
        (void) field_text(json_at(json_get(rule, "ports"), 0), port, sizeof(port));
        (void) snprintf(of, sizeof(of), ": %s, port %s", json_get_str(rule, "host"), port);
        cli_print_packages(p, of);
}

static void print_answer(const struct question *x, const struct policy_net_verdict *v, const struct json *rule,
                         const struct json *above) {
        char what[HOST_NAME + 80];

        what_text(x, what);
        (void) printf("%s: %s", v->allowed ? "allowed" : "denied", what);
        if (!v->allowed)
                (void) printf(": %s", v->code);
        (void) printf(" by %s%s", v->rule, rule ? ": " : "");
        if (rule)
                cli_print_rule(rule);
        if (*v->ceiling_rule)
                (void) printf("; %s%s", v->ceiling_rule, above ? ": " : "");
        if (above)
                cli_print_rule(above);
        (void) printf("\n");
        if (v->needs_http)
                (void) printf("  each request is judged too (--method, --path); TLS is opened for that\n");
        if (v->allowed && !x->q.address)
                (void) printf(
                        "  the address is judged once it is known (--address): only public ones pass, unless the\n"
                        "  ceiling names them\n");
}

int cmd_policy_explain(int argc, char **argv) {
        static struct policy p, ceiling;
        CLEANUP(policy_egress_freep) struct policy_egress *e = NULL;
        CLEANUP(json_freep) struct json *doc = NULL, *rule = NULL, *above = NULL;
        struct words w = { 0 };
        struct question x = { 0 };
        struct policy_net_verdict v;
        struct err err = { 0 };
        int r = words_read(argc, argv, &w);

        if (r != -1)
                return r;
        if (question_of(&w, &x, &err) < 0 || policies_read(&w, &p, &ceiling, &e, &err) < 0)
                return cli_fail(&err);
        question_resolve(&x, e);
        policy_net_eval(e, &x.q, &v);
        rule = rule_of(&p, &ceiling, v.rule);
        above = *v.ceiling_rule ? rule_of(&p, &ceiling, v.ceiling_rule) : NULL;
        doc = answer(&x, &v, e);
        if (w.json && rule)
                json_set(doc, "rule_text", TAKE_PTR(rule));
        if (w.json)
                r = cli_print(doc, true);
        else {
                print_answer(&x, &v, rule, above);
                print_preset(&p, &v, rule);
        }
        if (w.json && r != 0)
                return r;
        return v.allowed ? 0 : DENIED;
}
