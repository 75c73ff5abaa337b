/* sim.c - see sim.h. Eight kinds of instruction are all that our programs and libseccomp's have. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

uint32_t sim_run(const struct sys_bpf_insn *insns, size_t n, const struct sim_data *d, bool *ret_looked) {
        uint32_t a = 0;

        *ret_looked = false;
        for (size_t pc = 0; pc < n; pc++) {
                const struct sys_bpf_insn *i = &insns[pc];

                switch (i->code) {
                case 0x20: /* ld [k] */
                        if (i->k % 4 || i->k > sizeof(*d) - 4)
                                abort();
                        memcpy(&a, (const char *) d + i->k, sizeof(a));
                        *ret_looked |= i->k > 4;
                        break;
                case 0x54: /* and */
                        a &= i->k;
                        break;
                case 0x05: /* ja */
                        pc += i->k;
                        break;
                case 0x15: /* jeq */
                        pc += a == i->k ? i->jt : i->jf;
                        break;
                case 0x25: /* jgt */
                        pc += a > i->k ? i->jt : i->jf;
                        break;
                case 0x35: /* jge */
                        pc += a >= i->k ? i->jt : i->jf;
                        break;
                case 0x45: /* jset */
                        pc += a & i->k ? i->jt : i->jf;
                        break;
                case 0x06: /* ret */
                        return i->k;
                default:
                        abort();
                }
        }
        abort(); /* ran off the end */
}
