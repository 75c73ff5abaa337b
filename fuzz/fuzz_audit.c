/* fuzz_audit.c - the log as a stranger may give it to us: first byte 'e' an event as a message, 'r' a record, 'h' a
 * head, 'n' a signed note, 'p' a line of an index of documents. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rd.h"
#include "base/wr.h"
#include "json/json.h"
#include "ledger/pack.h"
#include "sign/sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was accepted can be sent on and becomes a record that checks. */
static void event(const uint8_t *p, size_t n) {
        static struct audit_event ev;
        struct audit_place at = { .seq = 1, .node = "n" };
        uint8_t space[2 * AUDIT_WIRE_MAX], hash[HASH_BYTES], again[HASH_BYTES];
        struct wr w = wr_to(space, sizeof(space));
        struct buf line = BUF_INIT(AUDIT_LINE_MAX);
        struct rd r = rd_from(p, n);
        struct err err = { 0 };

        if (audit_event_get(&r, &ev, &err) < 0)
                return;
        audit_event_put(&ev, &w);
        if (w.bad || w.len + r.left != n)
                abort();
        if (audit_record_make(&ev, &at, &line, hash, &err) == 0 &&
            (audit_record_check(line.p, line.len, 1, at.prev, again, &err) < 0 || memcmp(hash, again, HASH_BYTES) != 0))
                abort();
        buf_done(&line);
}

/* What egress says of an attempt: it is ours, but names in it are chosen by a sandbox. Whatever they are, an event that
 * passes the check becomes a record that checks. */
static void attempt(const char *text, size_t n) {
        static struct audit_event ev;
        struct audit_place at = { .seq = 1, .node = "n" };
        struct buf line = BUF_INIT(AUDIT_LINE_MAX);
        uint8_t hash[HASH_BYTES], again[HASH_BYTES];
        struct json *doc = NULL;
        struct err err = { 0 };

        if (json_parse("attempt", text, n, &doc, &err) < 0)
                return;
        audit_event_init(&ev, audit_attempt_kind(doc), "t", "");
        audit_attempt(&ev, doc);
        if (audit_event_check(&ev, &err) == 0 && audit_record_make(&ev, &at, &line, hash, &err) == 0 &&
            audit_record_check(line.p, line.len, 1, at.prev, again, &err) < 0)
                abort();
        buf_done(&line);
        (void) json_free(doc);
}

static void index_line(const char *text) {
        struct pack_entry e;
        char again[PACK_LINE + 1];

        if (pack_parse(text, &e) < 0)
                return;
        pack_line(&e, again);
        if (memcmp(again, text, PACK_LINE) != 0)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const uint8_t prev[HASH_BYTES], pub[SIGN_PUBLIC] = { 0x3d, 0x40, 0x17, 0xc3 };
        const char *text = (const char *) data + 1;
        struct audit_head head;
        struct err err = { 0 };
        uint8_t hash[HASH_BYTES];
        size_t n;

        if (size == 0 || size > 65536)
                return 0;
        size--;
        if (data[0] == 'e')
                event(data + 1, size);
        else if (data[0] == 'a')
                attempt(text, size);
        else if (data[0] == 'r')
                (void) audit_record_check(text, size, 1, prev, hash, &err);
        else if (data[0] == 'h')
                (void) audit_head_parse(text, size, &head, &err);
        else if (data[0] == 'n' && sign_note_open(text, size, pub, &n, &err) == 0)
                abort(); /* nobody has that key */
        else if (data[0] == 'p' && size >= PACK_LINE)
                index_line(text);
        return 0;
}
