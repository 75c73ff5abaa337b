/* net_packages.h - the configuration files of package clients, as far as they name registries. */
#pragma once

struct err;
struct policy_net;

enum net_client {
        NET_APT_LIST,    /* sources.list: deb [options] URI suite component... */
        NET_APT_SOURCES, /* deb822: URIs:, Enabled: */
        NET_PIP,
        NET_NPM,
        NET_GO,
        NET_CARGO,
        NET_CLIENTS,
};

/* Adds one allow rule for each registry in the text of a file of this client. What is no http or https URL of a host is
 * noted and left out. `file` is only shown. -ENOENT: it says nothing about registries. */
int net_packages_text(struct policy_net *net, enum net_client client, const char *file, const char *text,
                      struct err *err);
/* The same for one setting that stands alone: a list of URLs. `where` is only shown. */
int net_packages_value(struct policy_net *net, enum net_client client, const char *where, const char *value,
                       struct err *err);
const char *net_client_name(enum net_client client);
