/* net_flags.c - the network on the command line: --net, --allow, --ceiling, --resolve. */
#include "policy/net_flags.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "policy/decode.h"
#include "policy/net_rules.h"
#include "policy/policy.h"

enum { TEXT = HOST_NAME + 32, SHOWN = 60 };

/* --net none|packages|public: a preset and nothing else. -ENOENT: not one of these words. */
static int preset(struct policy *p, const char *text) {
        bool packages = str_eq(text, "packages"), open = str_eq(text, "public");
        struct policy_net *net = NULL;

        if (!packages && !open && !str_eq(text, "none"))
                return -ENOENT;
        if (packages || open) {
                net = net_new();
                if (!net)
                        return -ENOMEM;
                net->packages = packages;
                net->open = open;
        }
        (void) net_free(p->net);
        p->net = net;
        return 0;
}

int policy_net_flag_net(struct policy *p, const char *text, struct err *err) {
        CLEANUP(policy_freep) struct policy *from = NULL;
        int r = preset(p, text);

        if (r == 0)
                return 0;
        if (r != -ENOENT)
                return err_set(err, r, ERR_INTERNAL, "--net");
        r = policy_copy(p, &from, err); /* what the file does not say of a policy must still be valid */
        if (r < 0)
                return r;
        from->net = net_free(from->net);
        r = policy_read_net_file(text, from, err);
        if (r < 0)
                return err_wrap(err, "--net");
        (void) net_free(p->net);
        p->net = TAKE_PTR(from->net);
        return 0;
}

int policy_read_ceiling(const char *path, struct policy *ret, struct err *err) {
        int r = policy_read_net_file(path, ret, err);

        return r < 0 ? err_wrap(err, "--ceiling") : 0;
}

/* "A:B" at its last colon, "[A]:B", or A alone; more than one colon without brackets is an IPv6 address alone. *port =
 * "" without one. Cuts text in place. */
static int split_port(char *text, char **host, char **port) {
        char *colon = strchr(text, ':'), *end;

        *host = text;
        *port = text + strlen(text);
        if (*text == '[') {
                end = strchr(text, ']');
                if (!end || (end[1] && end[1] != ':'))
                        return -EINVAL;
                *host = text + 1;
                *port = end[1] ? end + 2 : end + 1;
                if (end[1] && !end[2])
                        return -EINVAL;
                *end = '\0';
        } else if (colon && !strchr(colon + 1, ':')) {
                if (!colon[1])
                        return -EINVAL;
                *colon = '\0';
                *port = colon + 1;
        }
        return 0;
}

static void rule_donep(struct net_rule *r) {
        net_rule_done(r);
}

int policy_net_flag_allow(struct policy *p, const char *text, struct err *err) {
        CLEANUP(rule_donep) struct net_rule rule = { 0 };
        struct policy_net *fresh = NULL;
        char copy[TEXT], *host, *port;
        struct addr_cidr cidr;
        int r;

        if (str_copy(copy, sizeof(copy), text) < 0 || strstr(text, "://") || split_port(copy, &host, &port) < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "--allow '%.*s': HOST[:PORT] or CIDR[:PORT] is expected",
                               SHOWN, text);
        if (addr_cidr_parse(host, &cidr) == 0 || *text == '[')
                r = net_rule_cidr(&rule, host, err);
        else
                r = net_rule_host(&rule, host, err);
        if (r == 0 && *port)
                r = net_rule_port(&rule, port, err);
        if (r == 0 && !p->net) {
                fresh = net_new();
                if (!fresh)
                        return err_set(err, -ENOMEM, ERR_INTERNAL, "--allow");
                p->net = fresh;
        }
        if (r == 0)
                r = net_add(p->net, true, &rule, err);
        return r < 0 ? err_wrap(err, "--allow") : 0;
}

int policy_net_flag_resolve(const char *text, struct policy_resolve *ret, struct err *err) {
        char copy[2 * TEXT], *eq, *name, *port, *address, *to_port;
        struct policy_resolve r = { 0 };

        eq = str_copy(copy, sizeof(copy), text) < 0 ? NULL : strchr(copy, '=');
        if (!eq)
                return err_set(err, -EINVAL, ERR_INVALID, "--resolve '%.*s': NAME:PORT=ADDRESS:PORT is expected", SHOWN,
                               text);
        *eq = '\0';
        if (split_port(copy, &name, &port) < 0 || net_port(port, &r.port) < 0 ||
            host_canonical(name, strlen(name), r.name) < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "--resolve: '%.*s' is not a host name with a port", SHOWN,
                               text);
        if (split_port(eq + 1, &address, &to_port) < 0 || net_port(to_port, &r.to_port) < 0 ||
            addr_parse(address, &r.address) < 0)
                return err_set(err, -EINVAL, ERR_INVALID,
                               "--resolve: '%.*s' has no address with a port behind the '='; IPv6 goes in brackets",
                               SHOWN, text);
        *ret = r;
        return 0;
}
