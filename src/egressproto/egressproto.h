/*
 * egressproto.h - the messages between a supervisor and gabion-egress. Pure: bytes in, values out.
 *
 * One message is one datagram of a SEQPACKET pair, at most EGP_MESSAGE_MAX bytes: u16 type, u32 request, body;
 * big-endian. The supervisor numbers its requests (not 0) and each gets exactly one answer that carries its number.
 * Descriptors travel with the datagram; egp_n_fds() says how many belong to it. docs/protocol/egress.md has the order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"

struct wr;

enum {
        EGP_FD = 3, /* the control socket of gabion-egress; it ends when the peer closes */
        EGP_MESSAGE_MAX = 4096,
        EGP_RECORD_MAX = 3072,          /* bytes of the JSON in EGP_RECORD */
        EGP_TEXT = 512,                 /* EGP_FAILED's text, with its NUL */
        EGP_DOCUMENT_MAX = 1024 * 1024, /* a document in a memfd: longer ones are refused */
        EGP_FDS_MAX = 4,
};

/* Places of the descriptors in a message. */
enum { EGP_ADD_TCP, EGP_ADD_DNS4, EGP_ADD_DNS6, EGP_ADD_DOCUMENT };
enum { EGP_CONFIG_DOCUMENT, EGP_CONFIG_KEEP };
enum { EGP_READY_KEEP, EGP_READY_CERTIFICATE };

enum egp_type {
        /* supervisor -> egress */
        EGP_CONFIG = 1, /* once, first; document, and EGP_READY_KEEP of a process that died, if there was one */
        EGP_ADD = 2,    /* sandbox; its listeners and document */
        EGP_UPDATE = 3, /* sandbox, u8 drop existing connections that are no longer allowed; document */
        EGP_REMOVE = 4, /* sandbox; EGP_OK follows the last record of that sandbox */
        EGP_PING = 5,
        /* egress -> supervisor */
        EGP_READY = 32,  /* answers EGP_CONFIG; memfd KEEP, opaque; u8 1: and the CA certificate (PEM) */
        EGP_OK = 33,     /* answers EGP_ADD, EGP_UPDATE, EGP_REMOVE, EGP_PING */
        EGP_FAILED = 34, /* answers any request: str text, for operators */
        EGP_RECORD = 35, /* request 0; one attempt as JSON, all bytes of the body */
};

struct egp_message {
        enum egp_type type;
        uint32_t request;
        char sandbox[ID_TEXT]; /* ADD, UPDATE, REMOVE */
        bool drop_existing;    /* UPDATE */
        bool with_certificate; /* READY */
        char text[EGP_TEXT];   /* FAILED */
        const char *record;    /* RECORD; decoded: borrowed from the datagram, not NUL-terminated */
        size_t n_record;
};

/* Writes the whole datagram; w->bad if a value is out of range or does not fit. */
void egp_put(struct wr *w, const struct egp_message *m);
/* Reads a whole datagram. 0, or -EBADMSG on anything odd: the peer is broken, and to be given up. */
int egp_get(const void *p, size_t n, struct egp_message *ret);
/* True if a message may come with n descriptors. */
bool egp_n_fds(const struct egp_message *m, size_t n);
