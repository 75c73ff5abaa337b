/*
 * nl.h - netlink messages: a bounded writer, and a bounded walk over what the kernel answers. Pure. Private to
 * sandbox/.
 *
 * Numbers in the heads are the machine's own, as the kernel wants them. (libmnl does this well, but Debian has no
 * static library of it, and gabion is static.)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NL_ALIGN = 4, NL_HEAD = 16, NL_ATTRIBUTE_HEAD = 4, NL_TYPE_MASK = 0x3fff };

struct nl {
        uint8_t *p;
        size_t len, cap, message; /* message: where the open one begins */
        uint32_t seq;             /* of the last message; the first has 1 */
        bool bad;                 /* sticky: something did not fit */
};

struct nl nl_to(void *p, size_t cap);
/* Begins a message, which ends where the next begins. head follows the netlink header and is padded. */
void nl_message(struct nl *n, uint16_t type, uint16_t flags, const void *head, size_t n_head);
void nl_put(struct nl *n, uint16_t type, const void *data, size_t n_data);
void nl_put_str(struct nl *n, uint16_t type, const char *s); /* with its NUL */
void nl_put_u32(struct nl *n, uint16_t type, uint32_t v);
void nl_put_be32(struct nl *n, uint16_t type, uint32_t v);
/* An attribute that holds attributes: what nl_nest() returns goes to nl_end(). */
size_t nl_nest(struct nl *n, uint16_t type);
void nl_end(struct nl *n, size_t at);

struct nl_bytes {
        const uint8_t *p;
        size_t n;
};

/* Takes the next message off *from. 1: *ret_type and its body (behind the netlink header); 0: none; -EBADMSG. */
int nl_next_message(struct nl_bytes *from, uint16_t *ret_type, struct nl_bytes *ret_body);
/* Takes the next attribute off *from. 1, 0, -EBADMSG. */
int nl_next(struct nl_bytes *from, uint16_t *ret_type, struct nl_bytes *ret);
/* Skips a head of n bytes, padding included. -EBADMSG if it is not there. */
int nl_skip(struct nl_bytes *from, size_t n);
/* The first attribute of a type, or { NULL, 0 }. */
struct nl_bytes nl_find(struct nl_bytes in, uint16_t type);
bool nl_is(struct nl_bytes a, const void *p, size_t n);
bool nl_is_str(struct nl_bytes a, const char *s);
/* 4 bytes in network order; otherwise if the attribute is not there. */
uint32_t nl_be32(struct nl_bytes a, uint32_t otherwise);
uint32_t nl_u32(struct nl_bytes a, uint32_t otherwise);
