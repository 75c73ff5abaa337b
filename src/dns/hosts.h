/* hosts.h - a hosts file in memory. Private to src/dns. */
#pragma once

#include <stddef.h>

#include "base/addr.h"
#include "dns/dns.h"

enum { HOSTS_MAX = 16384 }; /* names; the rest of a longer file is not used */

struct hosts;

/* 0 or -ENOMEM. The caller owns *ret. */
int hosts_parse(const char *text, size_t n, struct hosts **ret);
/* Accepts NULL. */
struct hosts *hosts_free(struct hosts *h);
void hosts_freep(struct hosts **h);
/* Adds the addresses of the families wanted to *res. False: the name is not in the file. */
bool hosts_find(const struct hosts *h, const char *name, unsigned want, struct dns_result *res);
