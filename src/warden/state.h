/*
 * state.h - what the warden's files share. Private to src/warden.
 * layers: allow-long the whole of the warden's state, and every function that more than one file uses
 *
 * One thread, one loop. What takes long, or waits for a sandbox, is done by a child process (job.c) that reports once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "agentproto/agentproto.h"
#include "cgroup/cgroup.h"
#include "ipc/ipc.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "sandbox/sandbox.h"
#include "seccomp/seccomp.h"
#include "wardenproto/wardenproto.h"

struct err;
struct json;

#define WARDEN_SLOTS "/run/gabion" /* as in src/sandbox: one numbering for all sandboxes of root */

enum {
        WARDEN_RUN_MAX = 64,      /* so that a socket's path fits into an address */
        WARDEN_BOXES = 4096,      /* sandboxes: there are no more slots */
        WARDEN_CLIENTS = 64,      /* connections */
        WARDEN_MAKERS = 4,        /* processes that make sandboxes */
        WARDEN_POOL_MAKERS = 2,   /* of them for pools: whoever waits finds one of the others */
        WARDEN_BATCH = 16,        /* sandboxes of a pool that one process makes, one after the other */
        WARDEN_QUEUE = 256,       /* waiting to be made */
        WARDEN_JOBS = 16,         /* other child processes */
        WARDEN_SHAPES = 32,       /* kinds of ready sandboxes */
        WARDEN_RETRY_MS = 5,      /* between attempts to remove a group that is busy */
        WARDEN_LATER_MS = 50,     /* without a claim, until a pool is filled up */
        WARDEN_BACKOFF_MS = 1000, /* before a pool tries again what failed */
        WARDEN_FD_REPORT = 7,     /* in a child: where it reports, */
        WARDEN_FD_IMAGE = 8,      /* the agent's image, */
        WARDEN_FD_MORE = 9,       /* and what else it was given */
};

/* A descriptor in the loop. */
struct watch {
        int fd; /* -1: none */
        void (*fn)(struct watch *w, uint32_t events);
};

struct client {
        TAILQ_ENTRY(client) link;
        struct watch watch;
        struct ipc_gate gate;
        uint64_t number; /* never given twice: replies that come late find their client by it */
        bool dead, subscribed;
        uint32_t serial; /* of WP_SUBSCRIBE */
};

/* Who waits for something. */
struct asker {
        uint64_t client;
        uint32_t serial;
};

/* What a maker or launcher said of a launcher at the gate; kept while a sandbox waits in a pool. */
struct facts {
        pid_t launcher;
        uint32_t groups;             /* struct cgroup: made */
        char filter_hash[HASH_TEXT]; /* of its filter, read back; "": the kernel does not show it */
        struct ap_ready ready;
};

struct box {
        TAILQ_ENTRY(box) link;
        struct watch end, listener; /* pidfd of the agent; refused calls */
        enum wp_state state;
        char id[ID_TEXT], tenant[WP_TENANT], hostname[WP_HOSTNAME];
        unsigned slot; /* valid once it is made */
        pid_t pid;
        uint64_t start; /* of that process, in ticks since boot */
        uint64_t created_ms;
        uid_t uid; /* whose socket */
        char policy[HASH_TEXT];
        struct wp_hashes read_back; /* evidence: when it is written down */
        uint64_t memory_limit, disk_limit;
        uint64_t offset; /* seconds by which its clocks are behind */
        enum seccomp_profile profile;
        bool kill; /* as soon as it is made */
        struct asker killer;
        struct wp_end last;
        uint64_t retry_ns, give_up_ns; /* removing its groups; 0: not yet */
        bool stuck;
        struct shape *shape; /* it waits in that pool */
        struct facts *facts; /* then */
        struct netbox *net;  /* network.h; NULL: without a network */
        struct guard *guard; /* guard.h; NULL: its policy has no rules of `monitor` */
        unsigned denials_left, suppressed;
        uint64_t denial_ns;
        struct trip *trip;   /* trip.c; NULL: nobody tells when it is changed from outside */
        bool tripped;        /* somebody did */
        bool untrippable;    /* that cannot be had */
        uint64_t checked_ns; /* when it was compared with its plan */
        char drift[WP_TEXT]; /* the control that was warned of; "": none */
};

/* A policy, decoded once for all that came with the same text. known.c */
struct known {
        TAILQ_ENTRY(known) link;
        unsigned refs;
        char *text;
        size_t n;
        struct policy it;
        char *canonical, hash[HASH_TEXT];
        char shape[HASH_TEXT]; /* the same for all that can come from one pool; the network does not count here */
};

/* A sandbox to be made. */
struct order {
        TAILQ_ENTRY(order) link;
        struct box *box;
        struct asker asker;
        uint64_t asked_ns;
        struct known *policy;
        char *env;
        size_t n_env;
        /* With a network: */
        struct known *ceiling;
        char *document, bind[WP_ADDRESS];
        struct netns netns; /* a ready one */
        bool has_netns;
        struct order *then; /* by the same process */
        struct shape *pool; /* where one like it would be ready; set by pool_claim() */
};

/* A child process at work. */
struct job {
        TAILQ_ENTRY(job) link;
        struct watch report;
        pid_t pid;
        void (*done)(struct job *j, struct ipc_msg *m); /* m NULL: it ended without a word */
        void (*ask)(struct job *j, struct ipc_msg *m);  /* it wants an answer first; may be NULL */
        struct order *order;                            /* of a maker; done() leaves the next one here */
        struct box *box;
        struct asker asker;
        bool maker, pool;
};

/* A kind of ready sandboxes. */
struct shape {
        TAILQ_ENTRY(shape) link;
        char hash[HASH_TEXT];
        struct known *policy, *ceiling; /* ceiling NULL: without a network */
        uint32_t wanted, making, ready, waiting;
        bool filling;
        uint64_t quiet_ns, not_before_ns; /* when nothing was claimed for a while; after a failure */
        bool failed;                      /* the last one could not be made */
        TAILQ_HEAD(, order) waiters;      /* for the next ones that are made; their boxes have only a name */
};

struct warden {
        char run[WP_PATH]; /* directory of lock, sockets */
        uid_t daemon;      /* who may connect, beside root */
        int epoll_fd, signal_fd, listen_fd, lock_fd;
        int slots_fd; /* directory of slot files, which are the records */
        int image_fd;
        int proc_fd, uts_fd, mnt_fd; /* /proc; our own namespaces */
        bool stop;
        uint64_t last_client;
        unsigned n_clients, n_boxes, n_makers, n_pool_makers, n_jobs, n_orders, n_shapes;
        unsigned n_ended; /* boxes of which something is to be removed */
        struct watch accept, signals;
        struct cgroup_host *groups;
        struct plan_facts facts;
        TAILQ_HEAD(, client) clients;
        TAILQ_HEAD(, box) boxes;
        TAILQ_HEAD(, order) orders;
        TAILQ_HEAD(, job) jobs;
        TAILQ_HEAD(, shape) shapes;
};

extern struct warden warden; /* one per process */

/* --- main.c --- */
void warden_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- loop.c --- */
int loop_watch(struct watch *w, int fd, void (*fn)(struct watch *w, uint32_t events));
/* Takes it out and closes it. */
void loop_drop(struct watch *w);
int loop_open(struct err *err);
/* Waits for something to do, and does it. */
void loop_turn(void);
/* The struct that a watch is a member of. */
#define OF_WATCH(w, type, member) ((type *) (void *) ((char *) (w) -offsetof(type, member)))

/* --- client.c --- */
int client_listen(struct err *err);
/* Answers a request that was put off, if its client is still there. failed = NULL: success. */
void client_reply(struct asker to, const struct wr *body, const struct err *failed);
void client_reply_fd(struct asker to, const struct wr *body, int fd);
/* With a descriptor, which is borrowed; -1: without. */
void client_tell(const struct wp_event *e);
/* Is that client still connected? */
bool client_is_there(uint64_t number);
void client_bury(void);

/* --- request.c --- */
extern const struct ipc_op request_ops[WP_TYPES];
/* --- known.c --- */
/* A policy from sealed memory; known_drop() is due. */
int known_read(int fd, struct known **ret, struct err *err);
struct known *known_ref(struct known *k);
void known_drop(struct known **k);

/* --- box.c --- */
struct box *box_new(const char *id, const char *tenant, struct err *err);
struct box *box_find(const char *id);
/* Takes the descriptors. */
int box_started(struct box *b, int pidfd, int listener_fd, struct err *err);
/* Ends it; asker may be {0}. */
void box_kill(struct box *b, struct asker asker);
/* Forgets one that was never started, or is gone. */
void box_free(struct box *b);
/* Goes on removing what is busy. Milliseconds until it wants to be called again, or -1. */
int box_retry(void);
/* Reaps ended children. */
void box_reap(void);
/* Path of the agent's or the gate's socket. */
void box_socket(const char *id, bool gate, char path[WP_PATH]);
int box_usage(const struct box *b, struct wp_usage *ret, struct err *err);
/* Names its groups: cgroup_refer(). */
int box_refer(const struct box *b, unsigned made, struct cgroup *ret, struct err *err);
/* Opens its groups. */
int box_groups(const struct box *b, struct cgroup *ret, struct err *err);
/* Events of a living one: refused calls. */
void box_listen(struct box *b, int listener_fd);

/* --- record.c: what is on disk of a sandbox. --- */
struct record {
        char id[ID_TEXT], tenant[WP_TENANT], hostname[WP_HOSTNAME], run[WP_PATH];
        int state; /* enum wp_state: making, pooled, running */
        uint32_t version, slot, pid, uid;
        uint64_t start, created_ms, memory_limit, disk_limit;
        uint64_t offset; /* seconds by which its clocks are behind */
        char policy_hash[HASH_TEXT], evidence_hash[HASH_TEXT];
        char *policy, *evidence; /* canonical JSON; owned; NULL: not there yet */
        char *egress;            /* rules of the network that are in force; NULL: none */
        char egress_id[ID_TEXT];
        uint64_t netns;
        bool own_certificates;
};
void record_done(struct record *r);
int record_write(int fd, const struct record *r, struct err *err);
int record_read(int fd, struct record *ret, struct err *err);
int record_policy(const struct record *r, struct policy *ret, struct err *err);
/* Opens the file of a slot. */
int record_open(unsigned slot, int flags);
int record_of(const struct box *b, struct record *ret, struct err *err);
/* The same as a document, for whoever needs little of it: most of the time goes into the texts of a struct record. */
int record_tree(const struct box *b, struct json **ret, struct err *err);
/* When a process started, in ticks since boot; 0 if there is none. */
uint64_t record_start_time(pid_t pid);

/* --- job.c --- */
typedef void (*job_fn)(const void *arg);
/* Runs fn(arg) in a child, which must report once (a maker: once for each order) and never returns. The struct is the
 * loop's afterwards. */
struct job *job_start(job_fn fn, const void *arg, bool maker, struct err *err);
/* The same for one that keeps descriptors of ours; in the child the numbers behind the pointers are its own. */
struct job *job_start_with(job_fn fn, const void *arg, bool maker, int *const fds[], size_t n, struct err *err);
/* In the child, before its report: asks something, of which the first byte is the kind, and waits for the answer. */
enum { JOB_ASKS = 2 };
int job_ask(const struct wr *body, const int *fds, size_t n_fds, struct ipc_msg *answer, struct rd *ret_body,
            struct err *err);
/* The parent's answer: begins with u8 1. */
void job_answer(struct job *j, const struct wr *body, const struct err *failed);
/* In the child: the one report. A good one starts with u8 1. */
int job_report(const struct wr *body, const int *fds, size_t n_fds);
_Noreturn void job_failed(const struct err *failed);
/* The parent's side: 0 and *ret_body, or what the child said went wrong. */
int job_result(const struct ipc_msg *m, struct rd *ret_body, struct err *err);

/* --- maker.c --- */
/* Queues a sandbox to be made; takes the policy and the variables. On failure box and order are gone. */
int maker_order(struct order *o, struct err *err);
void order_free(struct order *o);
/* Tells the asker what became of it. */
void maker_answer(const struct order *o, const struct box *b, bool from_pool);
/* Starts makers while there is work. */
void maker_next(void);
/* Sends AP_ENV over a connection to the gate and waits for the answer. */
int maker_env(int gate_fd, const char *env, size_t n_env, struct err *err);
int maker_connect_gate(const char *id, struct err *err);
/* What is known of a box, for its record. */
void record_from(struct record *r, const struct box *b);

/* --- statement.c --- */
/* Compiles, and fills in the plan's hash. hash: of the policy, if it is known already, else NULL. */
int statement_plan(const struct policy *policy, const char *hash, const char *hostname, const struct plan_way_out *way,
                   struct plan *ret, struct err *err);
struct sandbox;
struct evidence;
/* Into the record: policy, limits, and what is needed until statement_fill(). */
int statement_begin(const struct plan *plan, const struct known *policy, const struct evidence *ev, struct record *into,
                    struct err *err);
/* The same with the statement of what was read, and its hash. */
int statement_fill(const struct plan *plan, const struct known *policy, const struct sandbox *sb, struct evidence *ev,
                   struct record *into, struct err *err);
/* That, its plan and the policy, in sealed memory. Returns the descriptor. */
int statement_make(const struct plan *plan, const struct record *rec, struct err *err);

/* --- claim.c --- */
/* Applies what was ordered to one that waits in a pool, and reads everything back. */
int claim_apply(struct box *b, const struct wp_create *c, const struct order *o, uid_t uid, struct err *err);
/* What that has read is to be written down, soon; or not at all. */
void claim_later(struct box *b, const struct order *o);
void claim_drop(void);
/* Now, if that has not happened yet. */
void claim_finish(void);
/* When its time has come. Milliseconds until then, or -1. */
int claim_due(void);
/* True: the statement of this one is to be written first, and whoever asks gets it then. */
bool claim_ask(const struct box *b, struct asker asker);

/* --- pool.c --- */
/* ceiling NULL: without a network. */
int pool_set(struct known *p, struct known *ceiling, uint32_t wanted, struct err *err);
/* Orders what is missing. Milliseconds until it wants to be called again, or -1. */
int pool_fill(void);
/* A new sandbox came for a pool, or did not. */
void pool_made(struct box *b);
void pool_failed(struct box *b);
/* Takes it out of its pool. */
void pool_leave(struct box *b);
/* A ready one becomes the order's. -EAGAIN: there is none. Then comes pool_answer(). */
int pool_claim(const struct wp_create *c, struct order *o, uid_t uid, struct box **ret, struct err *err);
/* Tells the asker of it. What was read is written down later. */
void pool_answer(struct box *b, const struct order *o);
/* After -EAGAIN: the order waits for the next one that its pool makes. False: it has none, or one that makes none. */
bool pool_wait(struct order *o);

/* --- launch.c --- */
int launch_start(struct box *b, uint32_t uid, struct asker asker, struct err *err);
int launch_freeze(struct box *b, struct asker asker, struct err *err);
/* In a child: all of a struct box stands still. */
void launch_freeze_run(const void *box);

/* In a child: what it had to close, and needs; the plan of a sandbox, compiled anew from its record; what is needed to
 * read it back, until launch_let_go(). */
struct sandbox;
int launch_reopen(struct err *err);
int launch_plan(const struct box *b, const struct record *rec, struct plan *ret, struct err *err);
/* The same, of a policy that was read already and stays where it is. */
int launch_plan_of(const struct box *b, const struct policy *policy, bool own_certificates, struct plan *ret,
                   struct err *err);
int launch_hold(const struct box *b, const struct plan *plan, const struct record *rec, struct sandbox *sb,
                struct err *err);
void launch_let_go(struct sandbox *sb);

/* --- check.c: is a sandbox still as planned? --- */
/* Milliseconds until it wants to be called again, or -1. */
int check_due(void);
int check_start(struct box *b, struct asker asker, struct err *err);
/* As soon as may be: something has changed. */
void check_soon(struct box *b);
/* statement_make() of a sandbox that runs, and its hashes. */
int check_statement(const struct box *b, struct wp_hashes *ret, struct err *err);

/* --- trip.c: who changes a running sandbox from outside is noticed --- */
int trip_lay(struct box *b);
/* Safe for any box. */
void trip_drop(struct box *b);

/* --- recover.c --- */
/* Finds what a warden before us left: adopts what lives, ends the rest. */
int recover(struct err *err);
/* A little later, once more. Milliseconds until then, or -1. */
int recover_again(void);
