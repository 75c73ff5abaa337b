/* packet.c - see packet.h. */
#include "packet.h"

#include <string.h>

void packet_bytes(struct packet *p, const void *b, size_t n) {
        memcpy(p->b + p->n, b, n);
        p->n += n;
}

void packet_u16(struct packet *p, uint16_t v) {
        p->b[p->n++] = (uint8_t) (v >> 8);
        p->b[p->n++] = (uint8_t) v;
}

void packet_u32(struct packet *p, uint32_t v) {
        packet_u16(p, (uint16_t) (v >> 16));
        packet_u16(p, (uint16_t) v);
}

void packet_start(struct packet *p, uint16_t id, uint16_t flags, const uint16_t counts[4]) {
        p->n = 0;
        packet_u16(p, id);
        packet_u16(p, flags);
        for (int i = 0; i < 4; i++)
                packet_u16(p, counts[i]);
}

void packet_name(struct packet *p, const char *name) {
        while (*name) {
                size_t n = strcspn(name, ".");

                p->b[p->n++] = (uint8_t) n;
                packet_bytes(p, name, n);
                name += n + (name[n] == '.');
        }
        p->b[p->n++] = 0;
}

void packet_question(struct packet *p, const char *name, uint16_t type, uint16_t class) {
        packet_name(p, name);
        packet_u16(p, type);
        packet_u16(p, class);
}

void packet_record(struct packet *p, const char *owner, uint16_t type, uint32_t ttl, const void *data, size_t n) {
        packet_question(p, owner, type, 1);
        packet_u32(p, ttl);
        packet_u16(p, (uint16_t) n);
        packet_bytes(p, data, n);
}

void packet_alias(struct packet *p, const char *owner, uint32_t ttl, const char *target) {
        struct packet data = { .n = 0 };

        packet_name(&data, target);
        packet_record(p, owner, 5, ttl, data.b, data.n);
}

void packet_edns(struct packet *p, uint16_t size, uint32_t ttl) {
        packet_question(p, "", 41, size);
        packet_u32(p, ttl);
        packet_u16(p, 0);
}

struct packet packet_query(uint16_t id, const char *name, uint16_t type) {
        struct packet p;

        packet_start(&p, id, 0x0100, (const uint16_t[]){ 1, 0, 0, 0 });
        packet_question(&p, name, type, 1);
        return p;
}
