/*
 * netns.h - the network namespace of a sandbox with a network: made, given sockets, read back. Private to sandbox/ but
 * for struct netns, which sandbox.h has.
 *
 * What must happen inside the namespace is done by a process that shares the supervisor's memory and descriptors and
 * may use no libc; everything it sends is prepared beforehand. A rootless process cannot come back from there, so it is
 * the set-up child, or one that ends.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/sandbox.h"

enum {
        NETNS_LINKS_MAX = 1024,
        NETNS_RULES_MAX = 8192,
        NETNS_WEAK_PORT = 81, /* the twin: somebody listens there who should not */
};

struct netns_socket {
        int family, type;
        bool listens;
        socklen_t n_address;
        union {
                struct sockaddr any;
                struct sockaddr_in v4;
                struct sockaddr_in6 v6;
        } address;
};

struct netns_job {
        uint8_t links[NETNS_LINKS_MAX], rules[NETNS_RULES_MAX];
        size_t n_links, n_rules;
        uint32_t link_messages, rule_messages; /* the last one's number: its acknowledgement is awaited */
        struct netns_socket sockets[PLAN_NET_SOCKETS], canaries[PLAN_NET_CANARIES];
        enum sandbox_weaken weaken;
        int visit_family, visit_type, visit_fd; /* netns_visit(): one socket */
        struct netns *made;
        const char *step; /* what was being done when it failed, */
        int code;         /* and why; written inside the namespace */
};

/* netns_msg.c: all bytes and addresses of a job, in the supervisor. */
/* made: where the descriptors go as they come into being; emptied first. */
int netns_prepare(const struct plan_net *net, enum sandbox_weaken weaken, struct netns *made, struct netns_job *ret,
                  struct err *err);

/* netns_make.c; no libc in these: they run in the namespace. 0, or a negative errno with job->step. */
int netns_build(struct netns_job *job);
int netns_listen(struct netns_job *job);

/* netns_make.c: empties *n; closes what is open. */
void netns_none(struct netns *n);
void netns_close(struct netns *n);

/* netns_make.c; in the supervisor. Makes a namespace beside it, by a process that ends. */
int netns_make(struct netns_job *job, struct err *err);
/* One unbound socket in the namespace job->made->ns_fd, into job->visit_fd. */
int netns_visit(struct netns_job *job, struct err *err);
/* New listeners in the namespace job->made->ns_fd, by such a process. */
int netns_renew(struct netns_job *job, struct err *err);
/* Sockets to read the namespace job->made->ns_fd back, and new canaries in it. */
int netns_attach(struct netns_job *job, struct err *err);
