/* names.h - DNS as a sandbox sees it: allowed names have an address, others do not exist. Nothing is asked upstream. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sandbox;
struct stream;

/*
 * Answers one query of n bytes, and records it. Returns the length of the answer in dst (DNS_UDP_MAX bytes), 0 for no
 * answer. tcp: it came over TCP.
 */
size_t names_answer(struct sandbox *s, const void *p, size_t n, bool tcp, uint8_t *dst, size_t cap);

/* Reads what waits on a UDP socket of the sandbox, up to EGRESS_QUERIES_PER_TURN. */
void names_serve(struct sandbox *s, int fd);

/* DNS over TCP: takes fd. The sandbox owns the stream. */
void names_accept(struct sandbox *s, int fd);
void stream_free(struct stream *x);
