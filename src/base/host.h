/* host.h - host names in the one form in which they are compared: lower-case ASCII, no dot at the end. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { HOST_NAME = 254, HOST_LABEL_MAX = 63 }; /* 253 characters and NUL */

/*
 * Canonical form of n bytes: letters, digits, '-' and '_' in labels of 1 to 63 that neither begin nor end with '-'; one
 * dot at the end is dropped. 0 or -EINVAL. Names whose last label is a number (as in 10.1, 0x7f.1, 127.0.0.1) are
 * refused: others would take them for addresses.
 */
int host_canonical(const char *p, size_t n, char dst[HOST_NAME]);
