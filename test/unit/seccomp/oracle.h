/*
 * oracle.h - what the running kernel says to a program, without a single call being carried out.
 *
 * Every answer but an errno is rewritten to an errno of its own. A child loads the result, asks all the calls and
 * ends by a trap instruction, since not even exit is left to it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sim_data;
struct sys_bpf_insn;

/* Fills ret[i] with the `RET` value for v[i]. 0 or a negative errno (the kernel refused the program). */
int oracle_ask(const struct sys_bpf_insn *insns, size_t n, const struct sim_data *v, size_t n_v, uint32_t *ret);
