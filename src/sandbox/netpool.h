/*
 * netpool.h - network namespaces made before they are needed.
 *
 * Making one takes a few hundred microseconds, and milliseconds while others are being torn down; taking one from here
 * takes a few. Each is used once: what a sandbox left behind in it (counters, time-outs of connections) is seen by
 * nobody else. They belong to the supervisor's user namespace, like those that are made on the spot.
 *
 * One thread. A short-lived process that shares the caller's memory and descriptors makes what is missing, so filling
 * costs the caller one clone. A place in the pool holds 11 descriptors.
 */
#pragma once

#include "sandbox/sandbox.h"

struct err;
struct netpool;

enum { NETPOOL_MAX = 256 };

/* An empty pool for 1 to NETPOOL_MAX namespaces. The caller owns *ret. */
int netpool_new(unsigned size, struct netpool **ret, struct err *err);
/* Accepts NULL; returns NULL. */
struct netpool *netpool_free(struct netpool *p);

/* Starts to make what is missing, if nobody is at it. Returns at once. */
int netpool_fill(struct netpool *p, struct err *err);
/* Readable when a fill has ended: call netpool_collect(). -1: none is under way. */
int netpool_fd(const struct netpool *p);
/* Takes the end of a fill: 0, or why it ended early. Waits if it has not ended yet. */
int netpool_collect(struct netpool *p, struct err *err);
/* How many are ready now, also while others are being made. */
unsigned netpool_ready(const struct netpool *p);
/* The oldest one, which is the caller's from now on (sandbox_request.net takes it). -EAGAIN: none is ready. */
int netpool_take(struct netpool *p, struct netns *ret);
/* For one that was not used after all: it is thrown away, never put back. */
void netpool_drop(struct netns *n);
