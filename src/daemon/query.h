/* query.h - query strings of the control plane as values. Pure, fuzzed. Unknown parameters are ignored, as HTTP clients
 * expect; a known one with a wrong value is -EINVAL with a message that names it. query may be NULL: none was sent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "daemon/limits.h"
#include "store/store.h"

struct err;

enum { QUERY_TEXT = 8192 };

/* GET /v2/sandboxes and /sandboxes. The filter's texts point into this struct: it must not be copied. */
struct query_list {
        struct store_filter filter; /* tenant and limit are the caller's to set */
        unsigned limit;
        char template[CREATE_TEMPLATE], after_id[ID_TEXT];
        char text[QUERY_TEXT]; /* of metadata */
        size_t n_text;
};
int query_list(const char *query, bool v2, struct query_list *ret, struct err *err);

/* Where the next page begins: behind this one. */
void query_token(uint64_t created_ms, const char *id, char dst[PAGE_TOKEN]);
/* -EINVAL. */
int query_token_parse(const char *token, uint64_t *ret_ms, char id[ID_TEXT]);

/* GET .../logs, in milliseconds. */
struct query_logs {
        uint64_t from_ms; /* v1: start; v2: cursor */
        unsigned limit;
        bool backward;
        int level; /* 0 debug, 1 info, 2 warn, 3 error */
        char search[128];
};
int query_logs(const char *query, struct query_logs *ret, struct err *err);

/* GET .../metrics, in seconds; end 0: now. */
struct query_span {
        uint64_t start_s, end_s;
};
int query_span(const char *query, struct query_span *ret, struct err *err);

/* GET /sandboxes/metrics: sandbox_ids, what is no id left out. */
struct query_ids {
        char ids[METRICS_IDS][ID_TEXT];
        size_t n;
};
int query_ids(const char *query, struct query_ids *ret, struct err *err);

/* GET /gabion/v1/events; last_event_id: the header, or NULL. */
struct query_events {
        uint64_t after;
        bool has_after;
        unsigned limit;
        char tenant[STORE_NAME], sandbox[ID_TEXT];
};
int query_events(const char *query, const char *last_event_id, struct query_events *ret, struct err *err);

/* Of 20 characters of [a-z0-9]. */
bool query_is_id(const char *s);
