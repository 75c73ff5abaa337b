/* test_process.c - commands that are followed: to their end, over a lost connection, and when the server is wrong. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "client/process.h"
#include "json/json.h"
#include "site.h"

#define START "{\"event\":{\"start\":{\"pid\":7,\"at\":\"0\"}}}"
#define HELLO "{\"event\":{\"data\":{\"stdout\":\"aGVsbG8=\"}}}"
#define WORLD "{\"event\":{\"data\":{\"stderr\":\"d29ybGQ=\"}}}"
#define END "{\"event\":{\"end\":{\"exitCode\":5,\"exited\":true}}}"

static struct err err;

/* What came of a command. */
static struct told {
        struct site site;
        struct client_process *process;
        char out[256], notes[256], input[256];
        bool over, lazy;
        struct client_exit exit;
        struct err err;
} t;

/* A part of the stream; flag 2 is its end. */
static void frame(struct http_conn *c, uint8_t flag, const char *text) {
        char head[5] = { (char) flag, 0, 0, 0, (char) strlen(text) };

        assert_true(strlen(text) < 128);
        (void) http_reply_body(c, head, sizeof(head), &err);
        (void) http_reply_body(c, text, strlen(text), &err);
}

static void begin(struct http_conn *c) {
        assert_int_equal(http_reply_start(c, 200, NULL, HTTP_BODY_CHUNKED, 0, &err), 0);
}

static void finish(struct http_conn *c) {
        frame(c, 2, "{}");
        (void) http_reply_end(c, &err);
}

static void on_output(enum client_stream stream, struct evbuffer *bytes, void *data) {
        char piece[128];
        int n;

        (void) data;
        if (t.lazy) { /* not now */
                t.lazy = false;
                return;
        }
        n = evbuffer_remove(bytes, piece, sizeof(piece));
        (void) snprintf(t.out + strlen(t.out), sizeof(t.out) - strlen(t.out), "%d:%.*s ", (int) stream, n, piece);
}

static void on_note(const char *text, void *data) {
        (void) data;
        (void) snprintf(t.notes + strlen(t.notes), sizeof(t.notes) - strlen(t.notes), "%s\n", text);
}

static void on_started(void *data) {
        (void) data;
        client_process_input(t.process, "in", 2);
        client_process_close_input(t.process);
}

static void on_end(const struct client_exit *exit, const struct err *why, void *data) {
        (void) data;
        t.over = true;
        if (exit)
                t.exit = *exit;
        if (why)
                t.err = *why;
}

static void run(site_fn fn, bool lazy, bool input) {
        static const char *const argv[] = { "cmd", "a b", NULL };
        const struct client_box box = { .id = "abc", .token = "t" };
        const struct client_process_config config = { .argv = argv,
                                                      .timeout_ms = 1500,
                                                      .wants_input = input,
                                                      .on_output = on_output,
                                                      .on_started = input ? on_started : NULL,
                                                      .on_note = on_note,
                                                      .on_end = on_end };

        t = (struct told){ .lazy = lazy };
        site_start(&t.site, false, fn);
        assert_int_equal(client_process_new(t.site.client, &box, &config, &t.process, &err), 0);
        while (!t.over) {
                assert_true(event_base_loop(client_base(t.site.client), EVLOOP_ONCE) >= 0);
                if (lazy && !t.lazy && !t.over)
                        client_process_resume(t.process);
        }
        t.process = client_process_free(t.process);
        site_stop(&t.site);
}

static void plain(struct http_conn *c, const struct http_head *head, const char *body, size_t n_body, unsigned n) {
        struct json *j = NULL;

        assert_int_equal(n, 0);
        assert_string_equal(head->path, "/process.Process/Start");
        assert_string_equal(http_header(head, "Connect-Timeout-Ms", NULL), "1500");
        assert_true(n_body > 5 && json_parse("start", body + 5, n_body - 5, &j, &err) == 0);
        assert_string_equal(json_get_str(json_get(j, "process"), "cmd"), "cmd");
        assert_false(json_get_bool(j, "stdin", true));
        j = json_free(j);
        begin(c);
        frame(c, 0, START);
        frame(c, 0, HELLO);
        frame(c, 0, "{\"event\":{\"keepalive\":{}}}");
        frame(c, 0, WORLD);
        frame(c, 0, END);
        finish(c);
}

static void a_command_is_followed_to_its_end(void **state) {
        (void) state;
        run(plain, false, false);
        assert_string_equal(t.out, "0:hello 1:world ");
        assert_int_equal(t.exit.code, 5);
        assert_int_equal(t.err.code, 0);
        assert_string_equal(t.notes, "");
}

static void output_that_is_not_taken_waits(void **state) {
        (void) state;
        run(plain, true, false);
        assert_string_equal(t.out, "0:hello 1:world ");
        assert_int_equal(t.exit.code, 5);
}

static void cut(struct http_conn *c, const struct http_head *head, const char *body, size_t n_body, unsigned n) {
        const char *from = http_header(head, "Gabion-Output-From", NULL);

        (void) body, (void) n_body;
        if (n == 1) { /* not up again yet */
                http_reply_abort(c);
                return;
        }
        begin(c);
        if (n == 0) {
                assert_null(from);
                frame(c, 0, START);
                frame(c, 0, HELLO);
                site_abort(&t.site, c);
                return;
        }
        assert_string_equal(head->path, "/process.Process/Connect");
        assert_string_equal(from, "5");
        frame(c, 0, "{\"event\":{\"start\":{\"pid\":7,\"at\":\"5\"}}}");
        frame(c, 0, "{\"event\":{\"gap\":{\"bytes\":\"99\"}}}");
        frame(c, 0, WORLD);
        frame(c, 0, END);
        finish(c);
}

static void a_lost_connection_is_made_again_where_it_was(void **state) {
        (void) state;
        run(cut, false, false);
        assert_string_equal(t.out, "0:hello 1:world ");
        assert_int_equal(t.exit.code, 5);
        assert_string_equal(t.notes, "99 bytes of output are lost\n");
}

static void ended(struct http_conn *c, const struct http_head *head, const char *body, size_t n_body, unsigned n) {
        static const char gone[] = "{\"sandboxId\":\"abc\",\"message\":\"The sandbox was not found\",\"code\":502}";

        (void) head, (void) body, (void) n_body;
        if (n == 0) {
                begin(c);
                frame(c, 0, START);
                site_abort(&t.site, c);
        } else {
                (void) http_reply(c, 502, NULL, gone, strlen(gone), &err);
        }
}

static void a_sandbox_that_has_ended_is_not_waited_for(void **state) {
        (void) state;
        run(ended, false, false);
        assert_int_equal(t.err.code, -ENOENT);
        assert_non_null(strstr(t.err.msg, "The sandbox was not found"));
}

static void late(struct http_conn *c, const struct http_head *head, const char *body, size_t n_body, unsigned n) {
        (void) head, (void) body, (void) n_body, (void) n;
        begin(c);
        frame(c, 0, START);
        frame(c, 2, "{\"error\":{\"code\":\"deadline_exceeded\",\"message\":\"too long\"}}");
        (void) http_reply_end(c, &err);
}

static void a_command_whose_time_is_over_is_told_apart(void **state) {
        (void) state;
        run(late, false, false);
        assert_int_equal(t.err.code, -ETIME);
}

static void wrong(struct http_conn *c, const struct http_head *head, const char *body, size_t n_body, unsigned n) {
        (void) head, (void) body, (void) n_body, (void) n;
        begin(c);
        frame(c, 0, START);
        frame(c, 0, "{\"event\":{\"data\":{\"stdout\":\"no base64\"}}}");
        finish(c);
}

static void a_server_that_talks_nonsense_ends_it(void **state) {
        (void) state;
        run(wrong, false, false);
        assert_int_equal(t.err.code, -EPROTO);
        assert_string_equal(t.out, "");
}

static struct http_conn *output;

static void reads(struct http_conn *c, const struct http_head *head, const char *body, size_t n_body, unsigned n) {
        (void) n;
        if (str_eq(head->path, "/process.Process/Start")) {
                output = c;
                begin(c);
                frame(c, 0, START);
                return;
        }
        if (str_eq(head->path, "/process.Process/StreamInput")) { /* two messages, as they are */
                for (size_t at = 0; at + 5 < n_body; at += 5 + (uint8_t) body[at + 4])
                        (void) snprintf(t.input + strlen(t.input), sizeof(t.input) - strlen(t.input), "%.*s ",
                                        (uint8_t) body[at + 4], body + at + 5);
                begin(c);
                frame(c, 0, "{}");
                finish(c);
                return;
        }
        assert_string_equal(head->path, "/process.Process/CloseStdin");
        assert_string_equal(body, "{\"process\":{\"pid\":7}}");
        (void) http_reply(c, 200, NULL, "{}", 2, &err);
        frame(output, 0, END);
        finish(output);
}

static void input_goes_in_order_and_is_closed_at_the_end(void **state) {
        (void) state;
        run(reads, false, true);
        assert_string_equal(t.input,
                            "{\"start\":{\"process\":{\"pid\":7}}} {\"data\":{\"input\":{\"stdin\":\"aW4=\"}}} ");
        assert_int_equal(t.exit.code, 5);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_command_is_followed_to_its_end),
                cmocka_unit_test(output_that_is_not_taken_waits),
                cmocka_unit_test(a_lost_connection_is_made_again_where_it_was),
                cmocka_unit_test(a_sandbox_that_has_ended_is_not_waited_for),
                cmocka_unit_test(a_command_whose_time_is_over_is_told_apart),
                cmocka_unit_test(a_server_that_talks_nonsense_ends_it),
                cmocka_unit_test(input_goes_in_order_and_is_closed_at_the_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
