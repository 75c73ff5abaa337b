/* network_list.h - what the sandbox can learn of networks: interfaces, addresses, routes, neighbours. */
#pragma once

#include "probe/probe.h"

/* Any interface but the loopback one, in any of the ways to ask? */
bool network_has_interface(void);

void network_list_proc(struct probe_result *r);
void network_list_ioctl(struct probe_result *r);
/* A netlink dump: entries that belong to an interface other than number 1. type: RTM_GETLINK and so on. */
void network_list_netlink(struct probe_result *r, uint16_t type);
void network_list_v6(struct probe_result *r);
void network_list_sysfs(struct probe_result *r);
