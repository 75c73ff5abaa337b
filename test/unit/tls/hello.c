/* hello.c - see hello.h. */
#include "hello.h"

#include <string.h>

static void put(uint8_t *b, size_t *n, const void *p, size_t len) {
        memcpy(b + *n, p, len);
        *n += len;
}

static void put_u16(uint8_t *b, size_t *n, size_t v) {
        b[(*n)++] = (uint8_t) (v >> 8);
        b[(*n)++] = (uint8_t) v;
}

void hello_ext(struct hello *h, uint16_t type, const void *p, size_t n) {
        put_u16(h->ext, &h->n_ext, type);
        put_u16(h->ext, &h->n_ext, n);
        put(h->ext, &h->n_ext, p, n);
}

void hello_name(struct hello *h, const void *name, size_t n) {
        uint8_t b[2048];
        size_t len = 0;

        put_u16(b, &len, n + 3);
        b[len++] = 0;
        put_u16(b, &len, n);
        put(b, &len, name, n);
        hello_ext(h, 0, b, len);
}

void hello_start_old(struct hello *h, uint16_t version) {
        h->version = version;
        h->n_ext = 0;
}

void hello_start(struct hello *h) {
        /* x25519 base point: any 32 bytes would do */
        static const uint8_t share[] = { 0x00, 0x24, 0x00, 0x1d, 0x00, 0x20, 9, [37] = 0 };

        hello_start_old(h, 0x0303);
        hello_ext(h, 43, "\x04\x03\x04\x03\x03", 5);
        hello_ext(h, 10, "\x00\x02\x00\x1d", 4);
        hello_ext(h, 13, "\x00\x04\x04\x03\x08\x04", 6);
        hello_ext(h, 51, share, sizeof(share));
}

size_t hello_records(const struct hello *h, size_t chunk, uint8_t *dst) {
        /* grease, TLS_AES_128_GCM_SHA256, ECDHE-RSA-AES128-GCM, AES128-SHA */
        static const uint8_t ciphers[] = { 0x00, 0x08, 0x1a, 0x1a, 0x13, 0x01, 0xc0, 0x2f, 0x00, 0x2f, 0x01, 0x00 };
        static uint8_t msg[64 * 1024];
        size_t n = 4, out = 0;

        put_u16(msg, &n, h->version);
        memset(msg + n, 0x42, 32);
        n += 32;
        msg[n++] = 0; /* no session */
        put(msg, &n, ciphers, sizeof(ciphers));
        if (h->n_ext > 0) {
                put_u16(msg, &n, h->n_ext);
                put(msg, &n, h->ext, h->n_ext);
        }
        msg[0] = 1;
        msg[1] = (uint8_t) ((n - 4) >> 16);
        msg[2] = (uint8_t) ((n - 4) >> 8);
        msg[3] = (uint8_t) (n - 4);
        for (size_t at = 0; at < n; at += chunk) {
                size_t len = n - at < chunk ? n - at : chunk;

                put(dst, &out, "\x16\x03\x01", 3);
                put_u16(dst, &out, len);
                put(dst, &out, msg + at, len);
        }
        return out;
}
