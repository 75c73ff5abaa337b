/* vectors.h - the calls with which programs are compared: all numbers, and for calls with rules all the values that
 * a program could take for a boundary. */
#pragma once

#include <stddef.h>

#include "sim.h"

struct model;
struct sys_bpf_insn;

struct vectors {
        struct sim_data *v; /* shared with children */
        size_t n;
};

/* The same calls on every run. Constants come from the values file and from the program itself. */
struct vectors vectors_new(const struct model *m, unsigned profile, const struct sys_bpf_insn *insns, size_t n);
void vectors_done(struct vectors *v);
