/* audit_send.h - ways out of an export: standard output, sockets for syslog, HTTP by curl. Private to cli/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/export.h"

struct buf;
struct err;

enum send_kind { SEND_FILE, SEND_TCP, SEND_UNIX, SEND_HTTP };

struct sender {
        enum send_kind kind;
        enum export_form form;
        const char *to;
        int fd; /* socket; -1: not connected */
        struct export_key key;
        char headers[4096]; /* lines for curl's configuration */
        char why[160];      /* of the last refusal */
        uint64_t rejected;  /* records that an OTLP receiver took and threw away */
};

int sender_open(struct sender *s, enum export_form form, const char *to, const char *secret_path,
                const char *headers_path, struct err *err);
void sender_close(struct sender *s);
/* One request per record. */
bool sender_is_single(enum export_form form);
/* Messages that need a frame each. */
bool sender_is_framed(const struct sender *s, enum export_form form);
void sender_frame(const struct sender *s, const struct buf *message, struct buf *to);
/* 0: taken. -EAGAIN: not now (ask again after *ret_wait_ms, if it says so). Else never. id: of a webhook. */
int sender_send(struct sender *s, const struct buf *batch, const char *id, unsigned *ret_wait_ms, struct err *err);
const char *sender_why(const struct sender *s);
