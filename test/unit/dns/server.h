/* server.h - a DNS server on loopback in the loop of the test. What it answers depends on the first label:
 *
 * good: 192.0.2.1 and 2001:db8::1; four: IPv4 only; alias: through two names; nx; none: no address; fail: SERVFAIL;
 * silent: nothing; v6silent: 192.0.2.1, nothing for AAAA; cut: TC by UDP, 192.0.2.2 by TCP; cutoff: TC, then a closed
 * connection; lies: an answer to another question, one with another id, then the good one; short: TTL 0; once: the
 * first question of a kind is dropped; other: addresses of a name that was not asked for; long: a length above the
 * limit.
 */
#pragma once

#include <stdint.h>

#include "dns/dns.h"

struct event_base;
struct server;

struct server *server_new(struct event_base *base);
void server_free(struct server *s);
struct dns_server server_at(const struct server *s);
unsigned server_n_udp(const struct server *s);
unsigned server_n_tcp(const struct server *s);
/* Of the last question by UDP. */
uint16_t server_last_port(const struct server *s);
uint16_t server_last_id(const struct server *s);
