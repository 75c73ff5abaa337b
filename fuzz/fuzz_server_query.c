/* fuzz_server_query.c - paths and query strings of the control plane. The first byte chooses who reads the rest. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "daemon/query.h"
#include "daemon/route.h"
#include "json/json.h"

enum { INPUT_MAX = 16384 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const char *text, bool v2) {
        static struct query_list l;
        struct err err = { 0 };

        if (query_list(text, v2, &l, &err) < 0)
                return;
        if (l.filter.n_pairs > STORE_PAIRS || l.limit > PAGE_MAX || l.n_text > QUERY_TEXT)
                abort();
        for (size_t i = 0; i < l.filter.n_pairs; i++)
                if (!json_is_utf8(l.filter.pairs[i].key) || !json_is_utf8(l.filter.pairs[i].value))
                        abort();
}

static void check_token(const char *text) {
        char id[ID_TEXT], again[PAGE_TOKEN], back[ID_TEXT];
        uint64_t ms, ms_back;

        if (query_token_parse(text, &ms, id) < 0)
                return;
        query_token(ms, id, again);
        if (query_token_parse(again, &ms_back, back) < 0 || ms_back != ms || strcmp(id, back) != 0)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static char args[REQUEST_ARGS][REQUEST_ARG], allow[ROUTE_ALLOW];
        static struct query_ids ids;
        struct query_logs logs;
        struct query_span span;
        struct query_events events;
        struct err err = { 0 };
        AUTO_FREE char *text = NULL;

        if (size < 1 || size > INPUT_MAX)
                return 0;
        text = strndup((const char *) data + 1, size - 1);
        if (!text)
                return 0;
        switch (data[0] % 8) {
        case 0:
        case 1:
                check_list(text, data[0] % 8);
                break;
        case 2:
                (void) query_logs(text, &logs, &err);
                break;
        case 3:
                (void) query_span(text, &span, &err);
                break;
        case 4:
                (void) query_ids(text, &ids, &err);
                break;
        case 5:
                (void) query_events(text, text, &events, &err);
                break;
        case 6:
                check_token(text);
                break;
        default:
                (void) route_find("GET", text, args, allow);
                break;
        }
        return 0;
}
