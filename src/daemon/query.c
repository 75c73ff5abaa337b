/* query.c - see query.h. Each query has a function that takes one decoded parameter. */
#include "daemon/query.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "http/http.h"
#include "json/json.h"

enum { NAME_MAX_BYTES = 64, EVENTS_DEFAULT = 100, EVENTS_MAX = 1000 };

typedef int (*take_fn)(void *into, const char *name, const char *value, struct err *err);

static int each(const char *query, take_fn fn, void *into, struct err *err) {
        char name[NAME_MAX_BYTES], value[QUERY_TEXT];
        int r = 0;

        while (query && (r = http_query_next(&query, name, sizeof(name), value, sizeof(value))) == 1) {
                if (!json_is_utf8(value))
                        return err_set(err, -EINVAL, ERR_INVALID, "query: %.40s is not UTF-8", name);
                r = fn(into, name, value, err);
                if (r < 0)
                        return r;
        }
        return r < 0 ? err_set(err, -EINVAL, ERR_INVALID, "query: malformed or too long") : 0;
}

static int number(const char *name, const char *value, uint64_t min, uint64_t max, uint64_t *ret, struct err *err) {
        if (str_to_u64(value, max, ret) < 0 || *ret < min)
                return err_set(err, -EINVAL, ERR_INVALID, "%s: must be a number between %llu and %llu", name,
                               (unsigned long long) min, (unsigned long long) max);
        return 0;
}

bool query_is_id(const char *s) {
        return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ID_LEN && !s[ID_LEN];
}

void query_token(uint64_t created_ms, const char *id, char dst[PAGE_TOKEN]) {
        (void) snprintf(dst, PAGE_TOKEN, "%llu.%s", (unsigned long long) created_ms, id);
}

int query_token_parse(const char *token, uint64_t *ret_ms, char id[ID_TEXT]) {
        const char *dot = strchr(token, '.');
        char ms[24];

        if (!dot || dot - token >= (ptrdiff_t) sizeof(ms) || !query_is_id(dot + 1))
                return -EINVAL;
        memcpy(ms, token, (size_t) (dot - token));
        ms[dot - token] = '\0';
        (void) str_copy(id, ID_TEXT, dot + 1);
        return str_to_u64(ms, INT64_MAX, ret_ms) < 0 ? -EINVAL : 0;
}

/* --- lists --- */

/* A copy of a text that is encoded once more. NULL: it is not, or there is no room. */
static const char *keep(struct query_list *l, const char *encoded) {
        char *at = l->text + l->n_text;

        if (http_percent_decode(encoded, strlen(encoded), at, sizeof(l->text) - l->n_text) < 0 || !json_is_utf8(at))
                return NULL;
        l->n_text += strlen(at) + 1;
        return at;
}

/* Decoded once already. It is form-encoded pairs, whose names and values are encoded by themselves. */
static int take_metadata(struct query_list *l, const char *value, struct err *err) {
        char name[QUERY_TEXT], text[QUERY_TEXT];
        int r;

        while ((r = http_query_next(&value, name, sizeof(name), text, sizeof(text))) == 1) {
                const char *k = keep(l, name), *v = k ? keep(l, text) : NULL;

                if (!v || !*k)
                        return err_set(err, -EINVAL, ERR_INVALID, "metadata: malformed");
                if (l->filter.n_pairs == STORE_PAIRS)
                        return err_set(err, -EINVAL, ERR_INVALID, "metadata: at most %d pairs", STORE_PAIRS);
                l->filter.pairs[l->filter.n_pairs].key = k;
                l->filter.pairs[l->filter.n_pairs++].value = v;
        }
        return r < 0 ? err_set(err, -EINVAL, ERR_INVALID, "metadata: malformed") : 0;
}

static int take_state(struct query_list *l, const char *value, struct err *err) {
        l->filter.states = 0;
        while (*value) {
                size_t n = strcspn(value, ",");

                if (n == 7 && strncmp(value, "running", n) == 0)
                        l->filter.states |= BIT(STORE_RUNNING);
                else if (n == 6 && strncmp(value, "paused", n) == 0)
                        l->filter.states |= BIT(STORE_PAUSED);
                else
                        return err_set(err, -EINVAL, ERR_INVALID, "state: must be running, paused or both");
                value += n + (value[n] == ',');
        }
        if (!l->filter.states)
                return err_set(err, -EINVAL, ERR_INVALID, "state: must be running, paused or both");
        return 0;
}

static int take_page(struct query_list *l, const char *name, const char *value, struct err *err) {
        uint64_t v = 0;
        int r;

        if (str_eq(name, "limit")) {
                r = number(name, value, 1, PAGE_MAX, &v, err);
                l->limit = (unsigned) v;
                return r;
        }
        if (query_token_parse(value, &l->filter.after_ms, l->after_id) < 0)
                return err_set(err, -EINVAL, ERR_INVALID, "nextToken: is none that this server gave");
        l->filter.after_id = l->after_id;
        return 0;
}

static int take_list(void *into, const char *name, const char *value, struct err *err) {
        struct query_list *l = into;

        if (str_eq(name, "metadata"))
                return take_metadata(l, value, err);
        if (str_eq(name, "state"))
                return take_state(l, value, err);
        if (str_eq(name, "limit") || str_eq(name, "nextToken"))
                return take_page(l, name, value, err);
        if (str_eq(name, "order")) {
                l->filter.oldest_first = str_eq(value, "asc");
                return l->filter.oldest_first || str_eq(value, "desc")
                               ? 0
                               : err_set(err, -EINVAL, ERR_INVALID, "order: must be asc or desc");
        }
        if (str_eq(name, "startedAfter"))
                return clock_parse(value, &l->filter.since_ms) < 0
                               ? err_set(err, -EINVAL, ERR_INVALID,
                                         "startedAfter: must be a time like 2026-01-31T12:00:00Z")
                               : 0;
        if (str_eq(name, "template"))
                return str_copy(l->template, sizeof(l->template), value) < 0
                               ? err_set(err, -EINVAL, ERR_INVALID, "template: too long")
                               : 0;
        return 0;
}

static int take_list_v1(void *into, const char *name, const char *value, struct err *err) {
        return str_eq(name, "metadata") ? take_metadata(into, value, err) : 0;
}

int query_list(const char *query, bool v2, struct query_list *ret, struct err *err) {
        ret->filter = (struct store_filter){ .states = BIT(STORE_RUNNING) | (v2 ? BIT(STORE_PAUSED) : 0) };
        ret->limit = v2 ? PAGE_DEFAULT : 0;
        ret->template[0] = '\0';
        ret->n_text = 0;
        return each(query, v2 ? take_list : take_list_v1, ret, err);
}

/* --- logs --- */

static int take_level(struct query_logs *l, const char *value, struct err *err) {
        static const char *const names[] = { "debug", "info", "warn", "error" };

        for (int i = 0; i < (int) ARRAY_SIZE(names); i++)
                if (str_eq(names[i], value)) {
                        l->level = i;
                        return 0;
                }
        return err_set(err, -EINVAL, ERR_INVALID, "level: must be one of: debug info warn error");
}

static int take_logs(void *into, const char *name, const char *value, struct err *err) {
        struct query_logs *l = into;
        uint64_t v = 0;
        int r;

        if (str_eq(name, "limit")) {
                r = number(name, value, 0, LOGS_MAX, &v, err);
                l->limit = (unsigned) v;
                return r;
        }
        if (str_eq(name, "start") || str_eq(name, "cursor"))
                return number(name, value, 0, INT64_MAX, &l->from_ms, err);
        if (str_eq(name, "direction")) {
                l->backward = str_eq(value, "backward");
                return l->backward || str_eq(value, "forward")
                               ? 0
                               : err_set(err, -EINVAL, ERR_INVALID, "direction: must be forward or backward");
        }
        if (str_eq(name, "level"))
                return take_level(l, value, err);
        if (str_eq(name, "search"))
                return str_copy(l->search, sizeof(l->search), value) < 0
                               ? err_set(err, -EINVAL, ERR_INVALID, "search: too long")
                               : 0;
        return 0;
}

int query_logs(const char *query, struct query_logs *ret, struct err *err) {
        *ret = (struct query_logs){ .limit = LOGS_MAX };
        return each(query, take_logs, ret, err);
}

/* --- metrics --- */

static int take_span(void *into, const char *name, const char *value, struct err *err) {
        struct query_span *s = into;

        if (str_eq(name, "start"))
                return number(name, value, 0, UINT32_MAX, &s->start_s, err);
        if (str_eq(name, "end"))
                return number(name, value, 0, UINT32_MAX, &s->end_s, err);
        return 0;
}

int query_span(const char *query, struct query_span *ret, struct err *err) {
        *ret = (struct query_span){ 0 };
        return each(query, take_span, ret, err);
}

static int take_ids(void *into, const char *name, const char *value, struct err *err) {
        struct query_ids *w = into;
        char id[ID_TEXT];

        if (!str_eq(name, "sandbox_ids"))
                return 0;
        while (*value) {
                size_t n = strcspn(value, ",");

                if (w->n == METRICS_IDS)
                        return err_set(err, -EINVAL, ERR_INVALID, "sandbox_ids: at most %d", METRICS_IDS);
                (void) snprintf(id, sizeof(id), "%.*s", (int) (n < ID_TEXT ? n : ID_LEN), value);
                if (n == ID_LEN && query_is_id(id))
                        (void) str_copy(w->ids[w->n++], ID_TEXT, id);
                value += n + (value[n] == ',');
        }
        return 0;
}

int query_ids(const char *query, struct query_ids *ret, struct err *err) {
        ret->n = 0;
        return each(query, take_ids, ret, err);
}

/* --- events --- */

static int take_events(void *into, const char *name, const char *value, struct err *err) {
        struct query_events *w = into;
        uint64_t v = 0;
        int r;

        if (str_eq(name, "after")) {
                w->has_after = true;
                return number(name, value, 0, INT64_MAX, &w->after, err);
        }
        if (str_eq(name, "limit")) {
                r = number(name, value, 1, EVENTS_MAX, &v, err);
                w->limit = (unsigned) v;
                return r;
        }
        if (str_eq(name, "sandbox"))
                return !query_is_id(value) || str_copy(w->sandbox, sizeof(w->sandbox), value) < 0
                               ? err_set(err, -EINVAL, ERR_INVALID, "sandbox: must be an id")
                               : 0;
        if (str_eq(name, "tenant"))
                return str_copy(w->tenant, sizeof(w->tenant), value) < 0
                               ? err_set(err, -EINVAL, ERR_INVALID, "tenant: too long")
                               : 0;
        return 0;
}

int query_events(const char *query, const char *last_event_id, struct query_events *ret, struct err *err) {
        int r;

        *ret = (struct query_events){ .limit = EVENTS_DEFAULT };
        r = each(query, take_events, ret, err);
        if (r == 0 && last_event_id && !ret->has_after) {
                ret->has_after = true;
                r = number("Last-Event-ID", last_event_id, 0, INT64_MAX, &ret->after, err);
        }
        return r;
}
