/* net_flags.h - how the network part of a policy is made besides decoding it: flags of the command line (shared by run,
 * plan and explain), preset packages, and the fields of the E2B protocol. */
#pragma once

#include <stdbool.h>

struct err;
struct json;
struct policy;
struct policy_resolve;

/* --- preset packages --- */

/* Whose package clients are looked at: files below root ("" in earnest), the caller's home and variables. */
struct policy_packages {
        const char *root, *home;
        const char *(*env)(const char *name); /* "" for what is unset */
};

/* Replaces the preset by one allow rule for each registry that apt, pip, npm, go and cargo are configured to use. To be
 * called before policy_check() and hashing; does nothing without the preset. */
int policy_net_expand(struct policy *p, const struct policy_packages *from, struct err *err);

/* --- the command line (shared by run, plan, explain) --- */

/* --net none|packages|public|FILE replaces the network part. FILE: a policy file with version, name and network only.
 */
int policy_net_flag_net(struct policy *p, const char *text, struct err *err);
/* --allow HOST[:PORT], ADDRESS[:PORT], CIDR[:PORT], IPv6 in brackets with a port; without a port 80 and 443. Appends.
 */
int policy_net_flag_allow(struct policy *p, const char *text, struct err *err);
/* --ceiling FILE into *ret (policy_default() first): version, name and network only, since nothing else is compared. */
int policy_read_ceiling(const char *path, struct policy *ret, struct err *err);
/* --resolve NAME:PORT=ADDRESS:PORT */
int policy_net_flag_resolve(const char *text, struct policy_resolve *ret, struct err *err);

/* --- the E2B protocol --- */

/* `network` of a request (NULL: absent) and allow_internet_access replace the network part; allowOut beats denyOut, as
 * there. Members about connections to the sandbox are left to whoever serves those. */
int policy_net_from_e2b(struct policy *p, const struct json *network, bool internet, struct err *err);
