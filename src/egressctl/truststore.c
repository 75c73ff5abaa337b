/*
 * truststore.c - see truststore.h.
 *
 * A store is: magic, version, number of entries; each entry a tag, an alias, a date, a type and the certificate in DER;
 * at the end a SHA-1 over password, a salt of Java's own and all of it. Dates and aliases mean nothing to a trust
 * store, so they are the same each time.
 */
#include "egressctl/truststore.h"

#include <errno.h>
#include <sha1.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/wr.h"

enum { MAGIC = 0xfeedfeed, VERSION = 2, COUNT_AT = 8, TRUSTED = 2, FIELDS = 64 };

#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END "-----END CERTIFICATE-----"

/* Base64 in lines. The number of bytes, or negative. */
static ssize_t decode(const char *p, const char *end, uint8_t dst[TRUSTSTORE_DER]) {
        static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        unsigned bits = 0, n_bits = 0;
        bool ended = false;
        size_t n = 0;

        for (; p < end; p++) {
                const char *at = memchr(alphabet, *p, sizeof(alphabet) - 1);

                if (*p == '\n' || *p == '\r' || *p == ' ' || *p == '\t')
                        continue;
                if ((!at && *p != '=') || (at && ended))
                        return -EINVAL;
                ended = !at;
                if (ended)
                        continue;
                bits = (bits << 6 | (unsigned) (at - alphabet)) & 0xffff;
                n_bits += 6;
                if (n_bits < 8)
                        continue;
                if (n == TRUSTSTORE_DER)
                        return -E2BIG;
                n_bits -= 8;
                dst[n++] = (uint8_t) (bits >> n_bits);
        }
        return n > 0 ? (ssize_t) n : -EINVAL;
}

static void entry_add(struct buf *into, unsigned number, const uint8_t *der, size_t n) {
        uint8_t fields[FIELDS];
        struct wr w = wr_to(fields, sizeof(fields));
        char alias[16];

        (void) snprintf(alias, sizeof(alias), "ca%u", number);
        wr_u32(&w, TRUSTED);
        wr_str(&w, alias);
        wr_u64(&w, 0);
        wr_str(&w, "X.509");
        wr_u32(&w, (uint32_t) n);
        buf_add(into, fields, w.len);
        buf_add(into, der, n);
}

static void seal(struct buf *into) {
        static const uint8_t password[] = "\0c\0h\0a\0n\0g\0e\0i\0t"; /* UTF-16; the NUL behind it does not count */
        static const char salt[] = "Mighty Aphrodite";
        uint8_t digest[SHA1_DIGEST_LENGTH];
        SHA1_CTX c;

        SHA1Init(&c);
        SHA1Update(&c, password, sizeof(password) - 1);
        SHA1Update(&c, (const uint8_t *) salt, sizeof(salt) - 1);
        SHA1Update(&c, (const uint8_t *) into->p, into->len);
        SHA1Final(digest, &c);
        buf_add(into, digest, sizeof(digest));
}

int truststore_jks(const char *pem, struct buf *into, struct err *err) {
        uint8_t head[COUNT_AT + 4], der[TRUSTSTORE_DER];
        struct wr w = wr_to(head, sizeof(head));
        unsigned count = 0;

        buf_add(into, head, sizeof(head)); /* filled below, once the number is known */
        for (const char *end; (pem = strstr(pem, BEGIN)); pem = end) {
                ssize_t n;

                pem += strlen(BEGIN);
                end = strstr(pem, END);
                n = end ? decode(pem, end, der) : -EINVAL;
                if (n < 0)
                        return err_set(err, (int) n, ERR_INVALID,
                                       "certificates: number %u is not in PEM form, or too large", count + 1);
                entry_add(into, ++count, der, (size_t) n);
        }
        if (into->bad)
                return 0;
        wr_u32(&w, MAGIC);
        wr_u32(&w, VERSION);
        wr_u32(&w, count);
        memcpy(into->p, head, sizeof(head));
        seal(into);
        return 0;
}
