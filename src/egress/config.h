/* config.h - the CONFIG document: what holds for every sandbox of this process. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/host.h"

struct err;

enum { CONFIG_PATH = 1024, CONFIG_SECRET = 256 };

enum config_proxy { CONFIG_PROXY_NONE, CONFIG_PROXY_HTTP, CONFIG_PROXY_SOCKS5 };

struct config {
        char resolv_conf[CONFIG_PATH], hosts[CONFIG_PATH];
        char ca_bundle[CONFIG_PATH]; /* "": the system's */
        bool open_tls;
        bool upstream_names; /* the proxy gets names and looks them up; otherwise it gets the address that was judged */
        struct addr bind;    /* family ADDR_NONE: whatever the kernel takes */
        struct {
                enum config_proxy kind;
                char name[HOST_NAME]; /* "" with an address */
                struct addr address;
                uint16_t port;
                char user[CONFIG_SECRET], password[CONFIG_SECRET]; /* user "": none */
        } proxy;
};

/* Strict: an unknown member, a wrong type or a bad value is -EINVAL and a message that names it. */
int config_read(const char *text, size_t n, struct config *ret, struct err *err);
