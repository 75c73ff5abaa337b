/* fuzz_registry.c - any bytes as the configuration of a package client (chosen by the first one): the rules that come
 * out of it are exact hosts or addresses, one port each, and are told in the notes. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "policy/net_packages.h"
#include "policy/net_rules.h"

enum { INPUT_MAX = 16384 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(net_freep) struct policy_net *net = net_new();
        char text[INPUT_MAX + 1];
        struct err err = { 0 };
        int r;

        if (!net || size == 0 || size > INPUT_MAX || memchr(data + 1, 0, size - 1))
                return 0;
        memcpy(text, data + 1, size - 1);
        text[size - 1] = '\0';
        r = net_packages_text(net, data[0] % NET_CLIENTS, "file", text, &err);
        if (r < 0 && r != -ENOENT && !err.msg[0])
                abort();
        if (net->allow.n > net->n_notes || net->deny.n > 0)
                abort();
        for (size_t i = 0; i < net->allow.n; i++)
                if ((net->allow.at[i].kind != NET_EXACT && net->allow.at[i].kind != NET_CIDR) ||
                    net->allow.at[i].n_ports != 1 || net->allow.at[i].ports[0].first != net->allow.at[i].ports[0].last)
                        abort();
        return 0;
}
