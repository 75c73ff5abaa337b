/*
 * watch.h - a running sandbox is compared with its plan, and with what its policy expects. Private to run/.
 *
 * Drift is read on a schedule, and must be seen twice in a row. What the rules of `monitor` look at arrives as it
 * happens. Whatever is found is said, recorded, and answered as the policy wants: log, freeze or kill.
 */
#pragma once

#include "evidence/evidence.h"
#include "monitor/monitor.h"
#include "run/run.h"

struct json;
struct loop;

struct watch {
        struct loop *l;
        const struct evidence *first;
        struct monitor monitor;
        uint64_t next_ns; /* next reading */
        bool doubt;       /* the last reading found a drift that the next one must confirm */
        char told[48];    /* control that was warned of */
        bool frozen, kill;
};

/* Before the release. Fails when the policy wants what this process cannot watch. */
int watch_start(struct watch *w, struct loop *l, const struct evidence *first, struct err *err);
void watch_done(struct watch *w);
uint64_t watch_due_ns(const struct watch *w);
/* When due. */
void watch_look(struct watch *w);
/* Now, because somebody asks: like evidence_again(), but sure. What is found is answered as the policy wants. */
int watch_check(struct watch *w, struct evidence_drift *ret);
/* When the monitor's descriptor is readable. */
void watch_files(struct watch *w);
/* As they happen. */
void watch_call(struct watch *w);
/* An attempt to reach a host, as egress reports it (docs/protocol/egress.md): records it, too. */
void watch_network(struct watch *w, const struct json *attempt);
