/*
 * table.h - attempts that differ only in their arguments.
 *
 * A file lists them once, as X(id, severity, call, what, technique), and expands the list twice: into a function per
 * attempt (the contract hands an attempt no pointer to its own row) and into the rows that name those functions. The
 * call is an expression that may use c and r.
 */
#pragma once

#include "probe/probe.h"

#define PROBE_FN(id, severity, call, what, technique)                                                                  \
        static void try_##id(const struct probe_canaries *c, struct probe_result *r) {                                 \
                (void) c;                                                                                              \
                call;                                                                                                  \
        }
#define PROBE_ROW(id, severity, call, what, technique) { #id, PROBE_##severity, what, technique, try_##id },

/* It worked, and is meant to. */
static inline void probe_accepted(struct probe_result *r, const char *note) {
        probe_reached(r, note);
        r->verdict = PROBE_ACCEPTED;
}
