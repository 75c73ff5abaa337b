/* dnsq.c - see dnsq.h. */
#include "base/dnsq.h"

#include <errno.h>
#include <string.h>

#include "base/addr.h"
#include "base/rd.h"
#include "base/wr.h"

enum { TYPE_A = 1, CLASS_IN = 1, LABEL_MAX = 63, RECURSE = 0x0100, RESPONSE = 0x8000, CODE = 0xf, RECORDS_MAX = 16 };

void dnsq_write(struct wr *w, uint16_t id, const char *name) {
        wr_u16(w, id);
        wr_u16(w, RECURSE);
        wr_u16(w, 1); /* questions */
        wr_u16(w, 0);
        wr_u32(w, 0);
        while (*name) {
                size_t n = strcspn(name, ".");

                if (n == 0 || n > LABEL_MAX)
                        w->bad = true;
                wr_u8(w, (uint8_t) n);
                wr_bytes(w, name, n);
                name += n + (name[n] == '.');
        }
        wr_u8(w, 0);
        wr_u16(w, TYPE_A);
        wr_u16(w, CLASS_IN);
}

/* Labels up to the root or to a pointer, which is not followed: nobody here wants to know the name. */
static void skip_name(struct rd *r) {
        uint8_t n;

        while (!r->bad && (n = rd_u8(r)) != 0) {
                if ((n & 0xc0) == 0xc0) {
                        (void) rd_u8(r);
                        return;
                }
                (void) rd_bytes(r, n);
        }
}

int dnsq_read(const void *p, size_t n, uint16_t id, struct addr *ret) {
        struct rd r = rd_from(p, n);
        unsigned flags, questions, answers;

        if (rd_u16(&r) != id)
                return -EBADMSG;
        flags = rd_u16(&r);
        questions = rd_u16(&r);
        answers = rd_u16(&r);
        (void) rd_u32(&r);
        if (r.bad || !(flags & RESPONSE) || questions > 1)
                return -EBADMSG;
        if ((flags & CODE) != 0)
                return answers == 0 ? 0 : -EBADMSG;
        if (questions == 1) {
                skip_name(&r);
                (void) rd_u32(&r);
        }
        for (unsigned i = 0; i < answers && i < RECORDS_MAX; i++) {
                unsigned type, class, size;
                const uint8_t *data;

                skip_name(&r);
                type = rd_u16(&r);
                class = rd_u16(&r);
                (void) rd_u32(&r);
                size = rd_u16(&r);
                data = rd_bytes(&r, size);
                if (r.bad)
                        return -EBADMSG;
                if (type == TYPE_A && class == CLASS_IN && size == 4) {
                        *ret = (struct addr){ .family = ADDR_V4, .b = { data[0], data[1], data[2], data[3] } };
                        return 1;
                }
        }
        return 0;
}
