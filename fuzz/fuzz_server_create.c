/* fuzz_server_create.c - bodies of requests: JSON from strangers becomes a create, a time-out or a network, or nothing.
 * What was accepted is within its limits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "daemon/create.h"
#include "json/json.h"

enum { INPUT_MAX = 65536 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct create *c) {
        size_t n = 0;

        for (size_t i = 0; i < c->n_env; i++)
                n += c->env[i] == '\0';
        if (n != c->n_vars || c->n_env > CREATE_ENV || c->n_vars > CREATE_VARIABLES)
                abort();
        if (!c->metadata || c->timeout_s == 0 || c->timeout_s > CREATE_TIMEOUT_MAX || !c->template[0])
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(json_freep) struct json *doc = NULL, *network = NULL;
        struct err err = { 0 };
        struct create c;
        uint32_t s = 1;
        bool internet, drop;

        if (size > INPUT_MAX || json_parse("request", (const char *) data, size, &doc, &err) < 0)
                return 0;
        for (int v2 = 0; v2 < 2; v2++) {
                if (create_decode(doc, v2, CREATE_TIMEOUT_MAX, &c, &err) == 0)
                        check(&c);
                create_done(&c);
        }
        if (create_decode_timeout(doc, 0, CREATE_TIMEOUT_MAX, false, &s, &err) == 0 && s > CREATE_TIMEOUT_MAX)
                abort();
        (void) create_decode_refresh(doc, &s, &err);
        (void) create_decode_network(doc, &network, &internet, &drop, &err);
        return 0;
}
