/* wire.c - see wire.h. */
#include "wire.h"

#include <errno.h>
#include <string.h>

#include "dns/dns.h"

void wire_name_freep(ldns_rdf **name) {
        if (*name)
                ldns_rdf_deep_free(*name);
        *name = NULL;
}

struct wire_header wire_header_read(struct rd *r) {
        struct wire_header h;

        h.id = rd_u16(r);
        h.flags = rd_u16(r);
        h.n_questions = rd_u16(r);
        h.n_answers = rd_u16(r);
        h.n_authorities = rd_u16(r);
        h.n_additional = rd_u16(r);
        return h;
}

int wire_name_read(struct rd *r, const uint8_t *p, size_t n, ldns_rdf **ret) {
        ldns_rdf *name = NULL;
        size_t start = n - r->left, pos = start;
        ldns_status status;

        if (r->bad || r->left == 0)
                return -EBADMSG;
        status = ldns_wire2dname(&name, p, n, &pos);
        if (status == LDNS_STATUS_MEM_ERR)
                return -ENOMEM;
        if (status != LDNS_STATUS_OK)
                return -EBADMSG;
        if (pos < start || !rd_bytes(r, pos - start) || ldns_rdf_size(name) > DNS_WIRE_NAME) {
                wire_name_freep(&name);
                return -EBADMSG;
        }
        *ret = name;
        return 0;
}

int wire_rr_read(struct rd *r, const uint8_t *p, size_t n, struct wire_rr *ret) {
        struct wire_rr rr = { 0 };
        int code = wire_name_read(r, p, n, &rr.owner);

        if (code < 0)
                return code;
        rr.type = rd_u16(r);
        rr.class = rd_u16(r);
        rr.ttl = rd_u32(r);
        rr.n_data = rd_u16(r);
        rr.data_at = n - r->left;
        (void) rd_bytes(r, rr.n_data);
        if (r->bad) {
                wire_name_freep(&rr.owner);
                return -EBADMSG;
        }
        *ret = rr;
        return 0;
}

ldns_rdf *wire_name_new(const char *name) {
        return ldns_dname_new_frm_str(name);
}

int wire_name_text(const ldns_rdf *name, char dst[HOST_NAME]) {
        struct rd r = rd_from(ldns_rdf_data(name), ldns_rdf_size(name));
        char text[DNS_WIRE_NAME];
        size_t len = 0;

        for (size_t n = rd_u8(&r); n > 0; n = rd_u8(&r)) {
                const char *label = rd_bytes(&r, n);

                /* A dot inside a label would look like two labels once it is text. */
                if (!label || memchr(label, '.', n) || len + n + 1 > sizeof(text))
                        return -EINVAL;
                memcpy(text + len, label, n);
                len += n;
                text[len++] = '.';
        }
        return rd_done(&r) ? host_canonical(text, len, dst) : -EINVAL;
}
