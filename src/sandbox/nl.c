/* nl.c - see nl.h. */
#include "sandbox/nl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

struct head {
        uint32_t length;
        uint16_t type, flags;
        uint32_t seq, port;
};

struct attribute {
        uint16_t length, type;
};

_Static_assert(sizeof(struct head) == NL_HEAD && sizeof(struct attribute) == NL_ATTRIBUTE_HEAD, "the kernel's layout");

static size_t padded(size_t n) {
        return (n + NL_ALIGN - 1) & ~(size_t) (NL_ALIGN - 1);
}

struct nl nl_to(void *p, size_t cap) {
        return (struct nl){ .p = p, .cap = cap };
}

/* Appends n bytes and zeroes up to the next boundary. */
static void append(struct nl *n, const void *data, size_t n_data) {
        size_t whole = padded(n_data);

        if (n->bad || n_data > n->cap || whole > n->cap - n->len) {
                n->bad = true;
                return;
        }
        memset(n->p + n->len, 0, whole);
        if (n_data > 0)
                memcpy(n->p + n->len, data, n_data);
        n->len += whole;
}

/* The open message grows with everything that is appended. */
static void message_grow(struct nl *n) {
        uint32_t length = (uint32_t) (n->len - n->message);

        if (!n->bad)
                memcpy(n->p + n->message, &length, sizeof(length));
}

void nl_message(struct nl *n, uint16_t type, uint16_t flags, const void *head, size_t n_head) {
        struct head h = { 0, type, flags, ++n->seq, 0 };

        n->message = n->len;
        append(n, &h, sizeof(h));
        append(n, head, n_head);
        message_grow(n);
}

void nl_put(struct nl *n, uint16_t type, const void *data, size_t n_data) {
        struct attribute a = { (uint16_t) (NL_ATTRIBUTE_HEAD + n_data), type };

        if (n_data > UINT16_MAX - NL_ATTRIBUTE_HEAD) {
                n->bad = true;
                return;
        }
        append(n, &a, sizeof(a));
        append(n, data, n_data);
        message_grow(n);
}

void nl_put_str(struct nl *n, uint16_t type, const char *s) {
        nl_put(n, type, s, strlen(s) + 1);
}

void nl_put_u32(struct nl *n, uint16_t type, uint32_t v) {
        nl_put(n, type, &v, sizeof(v));
}

void nl_put_be32(struct nl *n, uint16_t type, uint32_t v) {
        nl_put_u32(n, type, htonl(v));
}

size_t nl_nest(struct nl *n, uint16_t type) {
        size_t at = n->len;

        nl_put(n, type | 0x8000, NULL, 0); /* NLA_F_NESTED */
        return at;
}

void nl_end(struct nl *n, size_t at) {
        uint16_t length = (uint16_t) (n->len - at);

        if (n->len - at > UINT16_MAX)
                n->bad = true;
        if (!n->bad)
                memcpy(n->p + at, &length, sizeof(length));
}

static void advance(struct nl_bytes *from, size_t n) {
        n = padded(n) < from->n ? padded(n) : from->n; /* the last one may lack its padding */
        from->p += n;
        from->n -= n;
}

int nl_next_message(struct nl_bytes *from, uint16_t *ret_type, struct nl_bytes *ret_body) {
        struct head h;

        if (from->n == 0)
                return 0;
        if (from->n < sizeof(h))
                return -EBADMSG;
        memcpy(&h, from->p, sizeof(h));
        if (h.length < sizeof(h) || h.length > from->n)
                return -EBADMSG;
        *ret_type = h.type;
        *ret_body = (struct nl_bytes){ from->p + sizeof(h), h.length - sizeof(h) };
        advance(from, h.length);
        return 1;
}

int nl_next(struct nl_bytes *from, uint16_t *ret_type, struct nl_bytes *ret) {
        struct attribute a;

        if (from->n == 0)
                return 0;
        if (from->n < sizeof(a))
                return -EBADMSG;
        memcpy(&a, from->p, sizeof(a));
        if (a.length < sizeof(a) || a.length > from->n)
                return -EBADMSG;
        *ret_type = a.type & NL_TYPE_MASK;
        *ret = (struct nl_bytes){ from->p + sizeof(a), a.length - sizeof(a) };
        advance(from, a.length);
        return 1;
}

int nl_skip(struct nl_bytes *from, size_t n) {
        if (from->n < n)
                return -EBADMSG;
        advance(from, n);
        return 0;
}

struct nl_bytes nl_find(struct nl_bytes in, uint16_t type) {
        struct nl_bytes a;
        uint16_t found;

        while (nl_next(&in, &found, &a) == 1)
                if (found == type)
                        return a;
        return (struct nl_bytes){ NULL, 0 };
}

bool nl_is(struct nl_bytes a, const void *p, size_t n) {
        return a.p && a.n == n && memcmp(a.p, p, n) == 0;
}

bool nl_is_str(struct nl_bytes a, const char *s) {
        return nl_is(a, s, strlen(s) + 1);
}

uint32_t nl_u32(struct nl_bytes a, uint32_t otherwise) {
        uint32_t v = otherwise;

        if (a.p && a.n == sizeof(v))
                memcpy(&v, a.p, sizeof(v));
        return v;
}

uint32_t nl_be32(struct nl_bytes a, uint32_t otherwise) {
        uint32_t v;

        if (!a.p || a.n != sizeof(v))
                return otherwise;
        memcpy(&v, a.p, sizeof(v));
        return ntohl(v);
}
