/* reference.h - the programs that libseccomp makes of the same tables (tools/seccomp-gen-ref.c). */
#pragma once

#include <stddef.h>

struct sys_bpf_insn;

const struct sys_bpf_insn *reference_program(unsigned profile, size_t *ret_n);
