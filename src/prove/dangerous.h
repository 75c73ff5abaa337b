/* dangerous.h - system calls that no sandboxed program should reach. Private to prove/. */
#pragma once

#include "prove/prove.h"

/* Asks this machine's kernel, outside any sandbox and without any privilege, which of the calls it has. */
void dangerous_exist(uint8_t ret[PROVE_DANGEROUS]);
