/*
 * head.c - what is signed after each batch. The first three lines are those of a C2SP checkpoint (origin, size, root);
 * the others let a writer go on without reading the log: hash of the last record, its place, the tree's peaks.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "sign/sign.h"

enum { LINES = 7, SIZE_MAX_BITS = MERKLE_PEAKS - 1, PEAKS_TEXT = 2100 };

void audit_head_text(const struct audit_head *h, struct buf *to) {
        uint8_t root[HASH_BYTES];
        char text[PEAKS_TEXT], last[HASH_HEX];

        merkle_root(&h->tree, root);
        sign_base64(text, sizeof(text), root, sizeof(root));
        buf_addf(to, "gabion/%s\n%" PRIu64 "\n%s\n", h->tenant, h->tree.size, text);
        str_hex(last, h->last, HASH_BYTES);
        sign_base64(text, sizeof(text), h->tree.peaks, merkle_peaks(h->tree.size) * HASH_BYTES);
        buf_addf(to, "last %s\nat %" PRIu64 " %" PRIu64 "\ntime %" PRIu64 "\npeaks %s\n", last, h->segment, h->offset,
                 h->time_ms, text);
}

static int number_after(const char *line, const char *word, uint64_t *ret) {
        size_t n = strlen(word);

        return strncmp(line, word, n) == 0 ? str_to_u64(line + n, UINT64_MAX / 2, ret) : -EINVAL;
}

static int peaks_get(const char *text, struct merkle *m) {
        size_t want = merkle_peaks(m->size) * HASH_BYTES;

        if (m->size >> SIZE_MAX_BITS)
                return -EINVAL;
        return sign_unbase64(m->peaks, sizeof(m->peaks), text) == (ssize_t) want ? 0 : -EINVAL;
}

static int fields_get(char *lines[LINES], struct audit_head *ret) {
        char *space = strchr(lines[4] + 3, ' ');

        if (!str_has_prefix(lines[0], "gabion/") || str_copy(ret->tenant, sizeof(ret->tenant), lines[0] + 7) < 0 ||
            !audit_tenant_ok(ret->tenant) || str_to_u64(lines[1], UINT64_MAX / 2, &ret->tree.size) < 0)
                return -EINVAL;
        if (!str_has_prefix(lines[3], "last ") || str_unhex(ret->last, HASH_BYTES, lines[3] + 5) < 0 || !space)
                return -EINVAL;
        *space = '\0';
        if (number_after(lines[4], "at ", &ret->segment) < 0 ||
            str_to_u64(space + 1, UINT64_MAX / 2, &ret->offset) < 0 ||
            number_after(lines[5], "time ", &ret->time_ms) < 0 || !str_has_prefix(lines[6], "peaks "))
                return -EINVAL;
        return peaks_get(lines[6] + 6, &ret->tree);
}

int audit_head_parse(const char *text, size_t n, struct audit_head *ret, struct err *err) {
        char copy[AUDIT_HEAD_BYTES], *lines[LINES], *at = copy;
        struct buf again = BUF_INIT(AUDIT_HEAD_BYTES);
        int r = 0;

        memset(ret, 0, sizeof(*ret));
        if (n >= sizeof(copy) || n == 0 || memchr(text, '\0', n))
                return err_set(err, -EBADMSG, ERR_INVALID, "not a head of an audit log");
        memcpy(copy, text, n);
        copy[n] = '\0';
        for (size_t i = 0; r == 0 && i < LINES; i++) {
                char *end = strchr(at, '\n');

                lines[i] = at;
                if (!end) {
                        r = -EINVAL;
                        break;
                }
                *end = '\0';
                at = end + 1;
        }
        if (r == 0)
                r = strlen(lines[4]) > 3 ? fields_get(lines, ret) : -EINVAL;
        if (r == 0)
                audit_head_text(ret, &again);
        /* There is one way to write a head: whatever was read, is written again and compared. */
        if (r < 0 || again.bad || again.len != n || memcmp(again.p, text, n) != 0)
                r = err_set(err, -EBADMSG, ERR_INVALID, "not a head of an audit log");
        buf_done(&again);
        return r;
}
