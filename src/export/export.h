/*
 * export.h - records of the audit log in the forms that others collect. Pure: a record's line in, bytes out.
 *
 * Nothing is left out or added on the way: what a form cannot say in its own fields, it carries as the line itself.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sign/sign.h"

struct buf;
struct err;

enum export_form {
        EXPORT_OCSF,    /* the line as it is */
        EXPORT_SYSLOG,  /* RFC 5424, the line as message */
        EXPORT_CEF,     /* CEF behind a header of RFC 5424 */
        EXPORT_OTLP,    /* OTLP/HTTP logs, JSON: one request per batch */
        EXPORT_HEC,     /* Splunk's collector: objects one after the other */
        EXPORT_WEBHOOK, /* Standard Webhooks: one request per record */
        EXPORT_FORMS
};

enum { EXPORT_WEBHOOK_MAX = 20000, EXPORT_KEY_MAX = 64 };

const char *export_form_name(enum export_form f);
enum export_form export_form_find(const char *name); /* EXPORT_FORMS if unknown */

/* One batch: begin, add each record, end. */
void export_begin(enum export_form f, const char *host, struct buf *to);
int export_add(enum export_form f, const char *line, size_t n, struct buf *to, struct err *err);
void export_end(enum export_form f, struct buf *to);
/* Frame of a syslog message on a stream: octet counting (RFC 6587). */
void export_frame(const char *message, size_t n, struct buf *to);

/* A webhook's key: "whsec_" (HMAC) or "whsk_" (Ed25519 seed) and base64. */
struct export_key {
        uint8_t bytes[EXPORT_KEY_MAX];
        size_t n;
        bool ed25519;
};
int export_key_parse(const char *text, struct export_key *ret, struct err *err);
/* The header's value: "v1,..." or "v1a,...". */
int export_webhook_sign(const struct export_key *k, const char *id, uint64_t time_s, const char *body, size_t n,
                        struct buf *to, struct err *err);
