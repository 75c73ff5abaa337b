/* hello.h - ClientHello messages written byte by byte, by rules of the tests' own: good ones and broken ones. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hello {
        uint16_t version;
        uint8_t ext[48 * 1024];
        size_t n_ext;
};

/* TLS 1.3 with the extensions every client sends (versions, groups, signatures, key share), and none that names
 * anybody. */
void hello_start(struct hello *h);
/* Without any extension, for old clients. */
void hello_start_old(struct hello *h, uint16_t version);
void hello_ext(struct hello *h, uint16_t type, const void *p, size_t n);
/* server_name with one entry of type 0. */
void hello_name(struct hello *h, const void *name, size_t n);
/* The message in records of at most chunk bytes. Returns the length in dst, which has room for 512 KiB. */
size_t hello_records(const struct hello *h, size_t chunk, uint8_t *dst);
