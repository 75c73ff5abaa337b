/* fuzz_policy.c - any bytes as a policy: a failure changes nothing; a success has a canonical form with its hash, and
 * egress reads what the supervisor writes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "json/json.h"
#include "policy/decode.h"
#include "policy/net.h"
#include "policy/policy.h"

enum { INPUT_MAX = 16384 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int r) {
        if (r < 0)
                abort();
}

/* The canonical form is a policy with the same hash, and so is the one in the document for egress. */
static void look(struct policy *p) {
        CLEANUP(policy_egress_freep) struct policy_egress *e = NULL;
        CLEANUP(json_freep) struct json *again = NULL;
        AUTO_FREE char *text = NULL, *document = NULL;
        char first[HASH_TEXT], second[HASH_TEXT];
        struct err err = { 0 };

        must(policy_canonical(p, &text, &err));
        must(policy_hash(p, first, &err));
        must(policy_egress_text(p, p, NULL, 0, &document, &err));
        must(policy_egress_read(document, strlen(document), &e, &err));
        must(strcmp(first, e->policy_hash) == 0 ? 0 : -1);
        must(json_parse("text", text, strlen(text), &again, &err));
        policy_done(p);
        policy_default(p);
        must(policy_decode(again, p, &err));
        must(policy_hash(p, second, &err));
        must(strcmp(first, second) == 0 ? 0 : -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(json_lines_freep) struct json_lines *lines = NULL;
        CLEANUP(json_freep) struct json *doc = NULL;
        static struct policy p, before; /* static: too large for a stack frame, and its mounts start as zeros */
        struct field_ctx ctx = { .what = "fuzz" };
        struct err err = { 0 };

        policy_default(&p);
        before = p;
        if (size > INPUT_MAX || json_parse_yaml("fuzz", (const char *) data, size, &doc, &lines, &err) < 0)
                return 0;
        ctx.lines = lines;
        if (policy_decode_at(&ctx, doc, &p, &err) < 0) {
                must(memcmp(&p, &before, sizeof(p)) == 0 && err.msg[0] ? 0 : -1);
                return 0;
        }
        if (policy_check(&p, &err) == 0) /* a preset may be left */
                look(&p);
        policy_done(&p);
        return 0;
}
