/* sim.h - classic BPF as the kernel runs it for seccomp, in user space. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sys_bpf_insn;

/* The kernel's struct seccomp_data. */
struct sim_data {
        int32_t nr;
        uint32_t arch;
        uint64_t ip;
        uint64_t args[6];
};

/* Runs the program; *ret_looked says whether it loaded anything but number and architecture (the kernel's allow
 * bitmap caches only calls that are allowed without). Aborts on an instruction that the kernel would refuse. */
uint32_t sim_run(const struct sys_bpf_insn *insns, size_t n, const struct sim_data *d, bool *ret_looked);
