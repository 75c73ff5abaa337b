/* test_query.c - query strings: metadata in its three layers, pages, filters, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "daemon/query.h"

static struct query_list list; /* large, and its texts point into itself */

static int parse(const char *query, bool v2, struct err *err) {
        *err = (struct err){ 0 };
        return query_list(query, v2, &list, err);
}

static void refuses(const char *query, const char *part) {
        struct err err;
        int r = parse(query, true, &err);

        if (r != -EINVAL || !strstr(err.msg, part))
                fail_msg("%s: %d '%s'; wanted '%s'", query, r, err.msg, part);
}

static void metadata_is_decoded_three_times(void **state) {
        struct err err;

        (void) state;
        /* {"k 1": "v&2"}, as the JavaScript SDK was seen to send it */
        assert_int_equal(parse("metadata=k%2525201%3Dv%2525262", true, &err), 0);
        assert_int_equal(list.filter.n_pairs, 1);
        assert_string_equal(list.filter.pairs[0].key, "k 1");
        assert_string_equal(list.filter.pairs[0].value, "v&2");
}

static void metadata_has_several_pairs(void **state) {
        struct err err;

        (void) state;
        assert_int_equal(parse("metadata=a%3D1%26b%3D%26c%3D%25252B", true, &err), 0);
        assert_int_equal(list.filter.n_pairs, 3);
        assert_string_equal(list.filter.pairs[0].value, "1");
        assert_string_equal(list.filter.pairs[1].key, "b");
        assert_string_equal(list.filter.pairs[1].value, "");
        assert_string_equal(list.filter.pairs[2].value, "+");
}

static void bad_metadata_is_refused(void **state) {
        char many[1024] = "metadata=";

        (void) state;
        refuses("metadata=%3Dv", "metadata");
        refuses("metadata=a%3D%25zz", "metadata");
        refuses("metadata=%ff%3D1", "UTF-8");
        refuses("metadata=a%3D%2525ff", "metadata"); /* the bad byte shows in the last layer */
        refuses("metadata=a%3D%2500", "metadata");
        for (unsigned i = 0; i <= STORE_PAIRS; i++) {
                size_t n = strlen(many);

                (void) snprintf(many + n, sizeof(many) - n, "k%u%%3Dv%%26", i);
        }
        refuses(many, "metadata: at most 16 pairs");
}

static void filters_are_read(void **state) {
        struct err err;

        (void) state;
        assert_int_equal(
                parse("state=paused%2Crunning&order=asc&limit=7&template=base&startedAfter=2026-01-01T00%3A00%3A02.007Z"
                      "&something=else",
                      true, &err),
                0);
        assert_int_equal(list.filter.states, BIT(STORE_RUNNING) | BIT(STORE_PAUSED));
        assert_true(list.filter.oldest_first);
        assert_int_equal(list.limit, 7);
        assert_string_equal(list.template, "base");
        assert_int_equal(list.filter.since_ms, 1767225602007);
        assert_null(list.filter.after_id);
        assert_int_equal(parse(NULL, true, &err), 0);
        assert_int_equal(list.limit, PAGE_DEFAULT);
        assert_false(list.filter.oldest_first);
        assert_int_equal(list.filter.states, BIT(STORE_RUNNING) | BIT(STORE_PAUSED));
}

static void the_first_version_knows_metadata_only(void **state) {
        struct err err;

        (void) state;
        assert_int_equal(parse("limit=nonsense&metadata=a%3D1", false, &err), 0);
        assert_int_equal(list.limit, 0);
        assert_int_equal(list.filter.states, BIT(STORE_RUNNING));
        assert_int_equal(list.filter.n_pairs, 1);
}

static void bad_filters_are_named(void **state) {
        (void) state;
        refuses("limit=0", "limit");
        refuses("limit=101", "limit");
        refuses("limit=-1", "limit");
        refuses("limit=", "limit");
        refuses("limit=1e1", "limit");
        refuses("state=", "state");
        refuses("state=gone", "state");
        refuses("state=running%2C%2Cpaused", "state");
        refuses("order=up", "order");
        refuses("startedAfter=yesterday", "startedAfter");
        refuses("nextToken=1", "nextToken");
        refuses("nextToken=1.abc", "nextToken");
        refuses("nextToken=-1.abcdefghijabcdefghij", "nextToken");
        refuses("nextToken=99999999999999999999.abcdefghijabcdefghij", "nextToken");
        refuses("a=%zz", "query");
        refuses("%00=1", "query");
}

static void pages_go_on_where_they_ended(void **state) {
        char token[PAGE_TOKEN], query[PAGE_TOKEN + 16], id[ID_TEXT];
        struct err err;
        uint64_t ms = 0;

        (void) state;
        query_token(1767225602007, "abcdefghijabcdefghij", token);
        assert_int_equal(query_token_parse(token, &ms, id), 0);
        assert_int_equal(ms, 1767225602007);
        assert_string_equal(id, "abcdefghijabcdefghij");
        (void) snprintf(query, sizeof(query), "nextToken=%s", token);
        assert_int_equal(parse(query, true, &err), 0);
        assert_int_equal(list.filter.after_ms, 1767225602007);
        assert_string_equal(list.filter.after_id, "abcdefghijabcdefghij");
}

static void logs_spans_ids_and_events(void **state) {
        static struct query_ids ids;
        struct query_logs logs;
        struct query_span span;
        struct query_events events;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(query_logs("cursor=5&limit=3&direction=backward&level=warn&search=x%20y", &logs, &err), 0);
        assert_true(logs.backward && logs.from_ms == 5 && logs.limit == 3 && logs.level == 2);
        assert_string_equal(logs.search, "x y");
        assert_int_equal(query_logs("limit=1001", &logs, &err), -EINVAL);
        assert_int_equal(query_logs("direction=sideways", &logs, &err), -EINVAL);
        assert_int_equal(query_logs("level=loud", &logs, &err), -EINVAL);
        assert_int_equal(query_span("start=1&end=2", &span, &err), 0);
        assert_true(span.start_s == 1 && span.end_s == 2);
        assert_int_equal(query_span("start=-1", &span, &err), -EINVAL);
        assert_int_equal(query_ids("sandbox_ids=abcdefghijabcdefghij,short,ABCDEFGHIJABCDEFGHIJ,aaaaaaaaaaaaaaaaaaaaa",
                                   &ids, &err),
                         0);
        assert_int_equal(ids.n, 1);
        assert_int_equal(query_events("after=7&limit=9&sandbox=abcdefghijabcdefghij&tenant=t", "8", &events, &err), 0);
        assert_true(events.has_after && events.after == 7 && events.limit == 9);
        assert_int_equal(query_events(NULL, "8", &events, &err), 0);
        assert_true(events.has_after && events.after == 8);
        assert_int_equal(query_events(NULL, "x", &events, &err), -EINVAL);
        assert_int_equal(query_events("sandbox=..", NULL, &events, &err), -EINVAL);
        assert_int_equal(query_events("limit=0", NULL, &events, &err), -EINVAL);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(metadata_is_decoded_three_times),
                cmocka_unit_test(metadata_has_several_pairs),
                cmocka_unit_test(bad_metadata_is_refused),
                cmocka_unit_test(filters_are_read),
                cmocka_unit_test(the_first_version_knows_metadata_only),
                cmocka_unit_test(bad_filters_are_named),
                cmocka_unit_test(pages_go_on_where_they_ended),
                cmocka_unit_test(logs_spans_ids_and_events),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
