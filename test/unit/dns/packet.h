/* packet.h - DNS packets written byte by byte, by rules of the tests' own: good ones and broken ones. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct packet {
        uint8_t b[8192];
        size_t n;
};

/* Header with the counts as given, which need not be true. */
void packet_start(struct packet *p, uint16_t id, uint16_t flags, const uint16_t counts[4]);
void packet_bytes(struct packet *p, const void *b, size_t n);
void packet_u16(struct packet *p, uint16_t v);
void packet_u32(struct packet *p, uint32_t v);
/* Labels between dots; "" is the root. */
void packet_name(struct packet *p, const char *name);
void packet_question(struct packet *p, const char *name, uint16_t type, uint16_t class);
/* A record of class IN. */
void packet_record(struct packet *p, const char *owner, uint16_t type, uint32_t ttl, const void *data, size_t n);
void packet_alias(struct packet *p, const char *owner, uint32_t ttl, const char *target);
void packet_edns(struct packet *p, uint16_t size, uint32_t ttl);
/* A whole query: one question, class IN, RD. */
struct packet packet_query(uint16_t id, const char *name, uint16_t type);
