/* options_net.c - the options of `gabion run` and `gabion plan` that speak of the network. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "policy/net_flags.h"
#include "policy/policy.h"
#include "run/run.h"

const char *cli_egress_log(void) {
        static char path[512];
        const char *state = cli_env("XDG_STATE_HOME");

        if (geteuid() == 0)
                return "/var/lib/gabion/egress.jsonl";
        if (state[0] == '/')
                (void) snprintf(path, sizeof(path), "%.400s/gabion/egress.jsonl", state);
        else
                (void) snprintf(path, sizeof(path), "%.400s/.local/state/gabion/egress.jsonl", cli_env("HOME"));
        return path;
}

int cli_net_take(int key, const char *arg, struct net_words *w, struct run_options *o) {
        switch (key) {
        case CLI_NET:
                w->net = arg;
                break;
        case CLI_ALLOW:
                if (w->n_allow == ARRAY_SIZE(w->allow))
                        return cli_usage("run", "--allow: at most %zu", ARRAY_SIZE(w->allow));
                w->allow[w->n_allow++] = arg;
                break;
        case CLI_CEILING:
                w->ceiling = arg;
                break;
        case CLI_RESOLVE:
                if (w->n_resolve == ARRAY_SIZE(w->resolve))
                        return cli_usage("run", "--resolve: at most %zu", ARRAY_SIZE(w->resolve));
                w->resolve[w->n_resolve++] = arg;
                break;
        case CLI_UPSTREAM:
                o->net.upstream_proxy = arg;
                break;
        case CLI_BIND:
                o->net.bind = arg;
                break;
        case CLI_CA_BUNDLE:
                o->net.ca_bundle = arg;
                break;
        default:
                o->net.log_path = arg;
        }
        return -1;
}

static int values_check(const struct run_options *o, struct err *err) {
        const char *proxy = o->net.upstream_proxy;
        struct addr a;

        if (proxy && !str_has_prefix(proxy, "http://") && !str_has_prefix(proxy, "socks5://"))
                return err_set(err, -EINVAL, ERR_INVALID,
                               "--upstream-proxy: http://HOST:PORT or socks5://HOST:PORT is expected");
        if (o->net.bind && addr_parse(o->net.bind, &a) < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "--bind '%.60s': an address of this host is expected",
                               o->net.bind);
        if (o->net.ca_bundle && access(o->net.ca_bundle, R_OK) < 0)
                return err_set(err, -errno, ERR_NOT_FOUND, "--ca-bundle %.150s: %s", o->net.ca_bundle, strerror(errno));
        return 0;
}

int cli_net_fill(const struct net_words *w, struct policy *p, struct run_options *o, struct err *err) {
        static struct policy_resolve resolve[POLICY_NET_RESOLVE];
        static struct policy ceiling;
        int r = w->net ? policy_net_flag_net(p, w->net, err) : 0;

        for (size_t i = 0; r == 0 && i < w->n_allow; i++)
                r = policy_net_flag_allow(p, w->allow[i], err);
        if (r == 0)
                r = cli_policy_expand(p, err);
        for (size_t i = 0; r == 0 && i < w->n_resolve; i++)
                r = policy_net_flag_resolve(w->resolve[i], &resolve[i], err);
        o->net.resolve = resolve;
        o->net.n_resolve = w->n_resolve;
        if (r == 0 && w->ceiling) {
                policy_default(&ceiling);
                r = policy_read_ceiling(w->ceiling, &ceiling, err);
                o->net.ceiling = &ceiling;
        }
        if (!o->net.log_path)
                o->net.log_path = cli_egress_log();
        return r < 0 ? r : values_check(o, err);
}
