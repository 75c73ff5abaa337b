/* loop.h - the life of a running command. Private to run/. */
#pragma once

#include "run/control.h"
#include "run/network.h"
#include "run/record.h"
#include "run/run.h"
#include "run/watch.h"

struct loop {
        const struct run_options *o;
        const struct plan *plan;
        struct sandbox *sb;
        struct run_result *result;
        struct network *net;
        struct control control;
        struct record *record;
        struct watch *watch;
        int signal_fd;
        bool raw;       /* the caller's terminal is in raw mode */
        bool ends_soon; /* nobody waits for the removal */
};

/* Serves the released command until it has ended and its output is written. Fills the result but for usage. */
int loop_run(struct loop *l, struct err *err);

/* Records a denial and says it on standard error, in one line. */
void denial_add(struct loop *l, const char *code, const char *rule, const char *what, const char *hint);
/* The same for what egress refused, under the event that the sandbox was told. The texts of *from are cleaned; times:
 * how often it happened. */
void denial_record(struct loop *l, const struct run_denial *from, unsigned times);

/* Opens each mount's source, makes it canonical, refuses dangerous ones. The descriptors go into fds. */
int mounts_open(const struct run_options *o, int fds[POLICY_MOUNTS], struct err *err);
