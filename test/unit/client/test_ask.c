/* test_ask.c - whole answers over real sockets, good and bad. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "site.h"

static struct err err;
static struct site site;

static void say(struct http_conn *c, unsigned status, const char *body) {
        assert_int_equal(http_reply(c, status, NULL, body, strlen(body), &err), 0);
}

static int ask(struct site *s, const char *method, const char *target, const char *text, struct client_reply *ret) {
        const struct client_request q = { .method = method, .target = target, .text = text };

        err = (struct err){ 0 };
        return client_ask(s->client, &q, ret, &err);
}

static void echo(struct http_conn *c, const struct http_head *head, const char *body, size_t n_body, unsigned n) {
        struct buf lines = BUF_INIT(256), text = BUF_INIT(1024);

        (void) n, (void) n_body;
        buf_addf(&text, "{\"method\":\"%s\",\"target\":\"%s\",\"key\":\"%s\",\"got\":%s}", head->method, head->target,
                 http_header(head, "X-API-Key", NULL), *body ? body : "null");
        http_add(&lines, "X-Next-Token", "more");
        assert_int_equal(http_reply(c, 200, &lines, buf_str(&text), text.len, &err), 0);
        buf_done(&lines);
        buf_done(&text);
}

static void requests_arrive_and_answers_come_back(void **state) {
        for (int on_unix = 0; on_unix < 2; on_unix++) {
                struct client_reply r;
                struct site s;

                (void) state;
                site_start(&s, on_unix, echo);
                assert_int_equal(ask(&s, "POST", "/x?y=z", "{\"a\":[1,2]}", &r), 0);
                assert_int_equal(r.status, 200);
                assert_string_equal(json_get_str(r.body, "method"), "POST");
                assert_string_equal(json_get_str(r.body, "target"), "/x?y=z");
                assert_string_equal(json_get_str(r.body, "key"), "e2b_0123");
                assert_int_equal(json_len(json_get(json_get(r.body, "got"), "a")), 2);
                assert_string_equal(r.next_page, "more");
                client_reply_done(&r);
                site_stop(&s);
        }
}

static void refuses(struct http_conn *c, const struct http_head *head, const char *body, size_t n_body, unsigned n) {
        (void) body, (void) n_body, (void) n;
        if (str_eq(head->path, "/401"))
                say(c, 401, "{\"code\":401,\"error_code\":\"x\",\"message\":\"invalid API key\",\"request\":\"r\"}");
        else if (str_eq(head->path, "/404"))
                say(c, 404,
                    "{\"error\":{\"code\":\"not_found\",\"message\":\"sandbox x was not found\",\"request\":\"r\"}}");
        else if (str_eq(head->path, "/page"))
                say(c, 200, "<html>");
        else if (str_eq(head->path, "/teapot"))
                say(c, 418, "<html>");
        else if (str_eq(head->path, "/abort"))
                http_reply_abort(c);
        else if (http_reply_start(c, 200, NULL, HTTP_BODY_LENGTH, 100, &err) == 0 &&
                 http_reply_body(c, "{", 1, &err) == 0)
                site_abort(&site, c);
}

static void refusals_say_what_the_server_said(void **state) {
        static const struct {
                const char *target;
                int result;
                const char *says;
        } all[] = {
                { "/401", -EACCES, "invalid API key; set GABION_API_KEY, or give --key-file" },
                { "/404", -ENOENT, "sandbox x was not found" },
                { "/page", -EINVAL, "the server's answer" },
                { "/teapot", -EIO, "is this a Gabion server?" },
                { "/abort", -ECONNRESET, "ended the connection without an answer" },
                { "/cut", -ECONNRESET, "in the middle of its answer" },
        };
        struct client_reply r;

        (void) state;
        site_start(&site, false, refuses);
        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                int n = ask(&site, "GET", all[i].target, NULL, &r);

                if (!strstr(err.msg, all[i].says))
                        fail_msg("%s: %d %s", all[i].target, n, err.msg);
                assert_true(n < 0);
                if (all[i].result != -EINVAL)
                        assert_int_equal(n, all[i].result);
                client_reply_done(&r);
        }
        site_stop(&site);
}

static void more(struct http_conn *c) {
        static char blanks[64 << 10];

        memset(blanks, ' ', sizeof(blanks));
        while (!http_reply_is_full(c))
                if (http_reply_body(c, blanks, sizeof(blanks), &err) < 0)
                        return;
}

static void endless(struct http_conn *c, const struct http_head *head, const char *body, size_t n_body, unsigned n) {
        (void) head, (void) body, (void) n_body, (void) n;
        assert_int_equal(http_reply_start(c, 200, NULL, HTTP_BODY_CHUNKED, 0, &err), 0);
        more(c);
}

static void an_answer_has_a_limit(void **state) {
        struct client_reply r;
        struct site s;

        (void) state;
        site_start(&s, false, endless);
        s.room = more;
        assert_int_equal(ask(&s, "GET", "/", NULL, &r), -EMSGSIZE);
        client_reply_done(&r);
        site_stop(&s);
}

/* As long as a directory with thousands of files. */
static void lists(struct http_conn *c, const struct http_head *head, const char *body, size_t n_body, unsigned n) {
        struct buf text = BUF_INIT(1 << 20);

        (void) head, (void) body, (void) n_body, (void) n;
        for (int i = 0; i < 30000; i++)
                buf_addf(&text, "%c{\"name\":%d}", i == 0 ? '[' : ',', i);
        buf_addf(&text, "]");
        say(c, 200, buf_str(&text));
        buf_done(&text);
}

static void a_long_list_is_read(void **state) {
        struct client_reply r;
        struct site s;

        (void) state;
        site_start(&s, false, lists);
        assert_int_equal(ask(&s, "GET", "/", NULL, &r), 0);
        assert_int_equal(json_len(r.body), 30000);
        client_reply_done(&r);
        site_stop(&s);
}

static void nobody_there_is_said_with_a_hint(void **state) {
        struct client_reply r;
        struct site s, gone;

        (void) state;
        site_start(&s, false, echo);
        gone = s;
        s.server = http_server_free(s.server);
        assert_int_equal(ask(&gone, "GET", "/", NULL, &r), -ECONNREFUSED);
        assert_non_null(strstr(err.msg, "is 'gabion serve' running there?"));
        assert_non_null(strstr(err.msg, s.url));
        site_stop(&s);
}

static void boxes(struct http_conn *c, const struct http_head *head, const char *body, size_t n_body, unsigned n) {
        (void) body, (void) n_body, (void) n;
        if (str_eq(head->path, "/sandboxes/one"))
                say(c, 200, "{\"sandboxID\":\"abc\",\"name\":\"one\",\"envdAccessToken\":\"t\",\"domain\":null}");
        else if (str_eq(head->path, "/sandboxes/two"))
                say(c, 200, "{\"sandboxID\":\"../x\",\"envdAccessToken\":\"t\"}");
        else if (str_eq(head->path, "/sandboxes/three"))
                say(c, 200, "{\"sandboxID\":\"abc\"}");
        else if (str_eq(http_header(head, "X-Access-Token", NULL), "t") && !http_header(head, "X-API-Key", NULL))
                say(c, 200, str_eq(http_header(head, "E2b-Sandbox-Id", NULL), "abc") ? "{\"ok\":true}" : "{}");
        else
                say(c, 401, "{}");
}

/* The key is for the server, and the token for its sandbox: neither goes to the other. */
static void sandboxes_are_found_and_called(void **state) {
        struct client_box box;
        struct client_reply r;
        struct site s;

        (void) state;
        site_start(&s, false, boxes);
        assert_int_equal(client_box_find(s.client, "one", &box, &err), 0);
        assert_string_equal(box.id, "abc");
        assert_int_equal(client_rpc(s.client, &box, "process.Process/List", NULL, json_new_object(), &r, &err), 0);
        assert_true(json_get_bool(r.body, "ok", false));
        client_reply_done(&r);
        assert_true(client_box_find(s.client, "two", &box, &err) < 0);
        assert_true(client_box_find(s.client, "../../admin", &box, &err) < 0);
        assert_int_equal(client_box_find(s.client, "three", &box, &err), 0);
        assert_int_equal(client_rpc(s.client, &box, "process.Process/List", NULL, json_new_object(), &r, &err), -EPERM);
        site_stop(&s);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(requests_arrive_and_answers_come_back),
                cmocka_unit_test(refusals_say_what_the_server_said),
                cmocka_unit_test(an_answer_has_a_limit),
                cmocka_unit_test(a_long_list_is_read),
                cmocka_unit_test(nobody_there_is_said_with_a_hint),
                cmocka_unit_test(sandboxes_are_found_and_called),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
