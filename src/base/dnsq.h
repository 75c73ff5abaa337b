/* dnsq.h - the smallest DNS client: one question for an IPv4 address, and whether it was answered. Pure. For our own
 * probes of our own resolver; whoever serves sandboxes uses src/dns. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct addr;
struct wr;

enum { DNSQ_MAX = 512, DNSQ_PORT = 53 };

/* w->bad if the name is no sequence of labels. */
void dnsq_write(struct wr *w, uint16_t id, const char *name);
/* 1: *ret is the first address; 0: refused, unknown, or none; -EBADMSG: no reply to this id. */
int dnsq_read(const void *p, size_t n, uint16_t id, struct addr *ret);
