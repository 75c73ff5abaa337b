/* wire.h - the bytes of DNS packets, private to src/dns. Names are read by ldns; the fixed fields by struct rd. */
#pragma once

#include <stdint.h>

#include <ldns/ldns.h>

#include "base/addr.h"
#include "base/host.h"
#include "base/rd.h"

enum { WIRE_HEADER = 12, WIRE_IN = 1, WIRE_OPT = 41, WIRE_POINTER_TO_QUESTION = 0xc000 | WIRE_HEADER };
enum { WIRE_QR = 0x8000, WIRE_TC = 0x0200, WIRE_RD = 0x0100, WIRE_RA = 0x0080, WIRE_CD = 0x0010 };

struct wire_header {
        uint16_t id, flags, n_questions, n_answers, n_authorities, n_additional;
};

/* A record as it stands in the packet. */
struct wire_rr {
        ldns_rdf *owner;
        uint16_t type, class;
        uint32_t ttl;
        size_t data_at, n_data; /* within the packet */
};

void wire_name_freep(ldns_rdf **name);
struct wire_header wire_header_read(struct rd *r);
/* The name at r, which reads the packet from its start p; follows compression. 0, -EBADMSG or -ENOMEM. The caller owns
 * *ret. */
int wire_name_read(struct rd *r, const uint8_t *p, size_t n, ldns_rdf **ret);
/* The same for a whole record; the caller owns ret->owner. */
int wire_rr_read(struct rd *r, const uint8_t *p, size_t n, struct wire_rr *ret);
/* A canonical name as it goes into a packet. NULL: out of memory. */
ldns_rdf *wire_name_new(const char *name);
/* Canonical text of a name; -EINVAL for anything but a host name, as dots or NUL inside a label. */
int wire_name_text(const ldns_rdf *name, char dst[HOST_NAME]);
