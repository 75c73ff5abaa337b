/*
 * egressctl.h - a supervisor's side of gabion-egress: starts the process, gives it sandboxes, hears of every attempt.
 *
 * One thread. Calls that wait for an answer serve records meanwhile. When the process dies, every call fails with
 * -EPIPE until egressctl_restart(); the sandboxes must then be added again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct egressctl;
struct err;

enum { EGRESSCTL_PATH = 1024, EGRESSCTL_LISTENERS = 3 };

struct egressctl_config {
        const char *upstream_proxy, *bind, *ca_bundle; /* NULL: none */
        bool open_tls;                                 /* a certificate authority is wanted */
        const char *keep_path; /* root's alone: what must outlive us too is kept there; NULL: it need not */
};

/* One attempt, as JSON; borrowed for the call. */
typedef void (*egressctl_record_fn)(void *arg, const char *json, size_t n);

/* The program: installed with us, or in the build directory. Fails with the remedy. */
int egressctl_find(char dst[EGRESSCTL_PATH], struct err *err);

/* Starts the process and sends the configuration; does not wait. The caller owns *ret. */
int egressctl_start(const struct egressctl_config *c, egressctl_record_fn fn, void *arg, struct egressctl **ret,
                    struct err *err);
/* A new process in place of one that died, with the same configuration and certificate. */
int egressctl_restart(struct egressctl *e, struct err *err);
/* Lets the process end, and waits for it. Accepts NULL; returns NULL. */
struct egressctl *egressctl_free(struct egressctl *e);

/* Waits until it is ready; then the certificate to trust inside, PEM, or NULL. */
int egressctl_wait_ready(struct egressctl *e, struct err *err);
const char *egressctl_certificate(const struct egressctl *e);
pid_t egressctl_pid(const struct egressctl *e); /* 0: it has died */

/* Each waits for the answer, for a bounded time. The listeners stay the caller's, who should close them. */
int egressctl_add(struct egressctl *e, const char *sandbox, const int listeners[EGRESSCTL_LISTENERS],
                  const char *document, struct err *err);
int egressctl_update(struct egressctl *e, const char *sandbox, const char *document, bool drop_existing,
                     struct err *err);
/* Returns after the last record of that sandbox. */
int egressctl_remove(struct egressctl *e, const char *sandbox, struct err *err);

/* Waits until everything that happened before has been said. */
int egressctl_ping(struct egressctl *e, struct err *err);

/* Readable: call egressctl_serve(). -1: it has died. */
int egressctl_fd(const struct egressctl *e);
/* Takes what is there. 0, or -EPIPE with the reason when the process has ended (once). */
int egressctl_serve(struct egressctl *e, struct err *err);
