/* test_message.c - messages of clients, and to them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <event2/buffer.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "envd/envd.h"
#include "envd/message.h"
#include "fileproto/fileproto.h"
#include "json/json.h"

static struct json *parse(const char *text) {
        struct json *j = NULL;
        struct err err = { 0 };

        if (json_parse("request", text, strlen(text), &j, &err) < 0)
                fail_msg("%s", err.msg);
        return j;
}

static void assert_json(struct json *j, const char *expected) {
        struct err err = { 0 };
        char *text = NULL;

        assert_int_equal(json_text(j, false, &text, &err), 0);
        assert_string_equal(text, expected);
        free(text);
        (void) json_free(j);
}

static void start_has_defaults(void **state) {
        struct json *j = parse("{\"process\":{\"cmd\":\"ls\"}}");
        struct message_start m;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(message_start_read(j, &m, &err), 0);
        assert_string_equal(m.cmd, "ls");
        assert_null(m.cwd);
        assert_null(m.tag);
        assert_false(m.pty);
        assert_false(m.no_stdin);
        (void) json_free(j);
}

static void start_takes_everything(void **state) {
        struct json *j =
                parse("{\"process\":{\"cmd\":\"sh\",\"args\":[\"-c\",\"x\"],\"envs\":{\"A\":\"b\"},\"cwd\":\"/tmp\"},"
                      "\"pty\":{\"size\":{\"cols\":80,\"rows\":24}},\"tag\":\"t\",\"stdin\":false}");
        struct message_start m;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(message_start_read(j, &m, &err), 0);
        assert_int_equal(json_len(m.args), 2);
        assert_int_equal(json_len(m.envs), 1);
        assert_true(m.pty);
        assert_false(m.no_stdin); /* a terminal is always an input */
        assert_int_equal(m.cols, 80);
        assert_string_equal(m.tag, "t");
        (void) json_free(j);
}

static void errors_name_the_member(void **state) {
        static const char *const cases[][2] = {
                { "{\"process\":{\"cmd\":\"x\",\"args\":[\"a\",2]}}", "process.args[1]" },
                { "{\"process\":{\"cmd\":\"x\",\"envs\":{\"A\":1}}}", "process.envs.A" },
                { "{\"process\":{\"cmd\":\"x\",\"envs\":{\"A=B\":\"1\"}}}", "process.envs" },
                { "{\"process\":{\"cmd\":\"x\"},\"pty\":{\"size\":{\"cols\":70000,\"rows\":1}}}", "pty.size.cols" },
                { "{\"process\":{\"cmd\":\"x\"},\"colour\":1}", "colour" },
                { "{}", "process" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct json *j = parse(cases[i][0]);
                struct message_start m;
                struct err err = { 0 };

                assert_int_equal(message_start_read(j, &m, &err), -EINVAL);
                if (!strstr(err.msg, cases[i][1]))
                        fail_msg("'%s' does not name %s", err.msg, cases[i][1]);
                (void) json_free(j);
        }
}

static void commands_take_only_their_members(void **state) {
        static const struct {
                enum message_about about;
                const char *text;
                bool good;
        } cases[] = {
                { MESSAGE_WHO, "{\"process\":{\"pid\":7}}", true },
                { MESSAGE_WHO, "{\"process\":{\"tag\":\"t\"}}", true },
                { MESSAGE_WHO, "{\"process\":{\"pid\":7,\"tag\":\"t\"}}", false },
                { MESSAGE_WHO, "{\"process\":{}}", false },
                { MESSAGE_WHO, "{\"process\":{\"pid\":0}}", false },
                { MESSAGE_WHO, "{\"process\":{\"pid\":7},\"signal\":\"SIGNAL_SIGKILL\"}", false },
                { MESSAGE_SIGNAL, "{\"process\":{\"pid\":7},\"signal\":\"SIGNAL_SIGKILL\"}", true },
                { MESSAGE_SIGNAL, "{\"process\":{\"pid\":7},\"signal\":\"SIGNAL_SIGSTOP\"}", false },
                { MESSAGE_SIGNAL, "{\"process\":{\"pid\":7}}", false },
                { MESSAGE_INPUT, "{\"process\":{\"pid\":7},\"input\":{\"stdin\":\"eA==\"}}", true },
                { MESSAGE_INPUT, "{\"process\":{\"pid\":7},\"input\":{\"stdin\":\"\",\"pty\":\"\"}}", false },
                { MESSAGE_RESIZE, "{\"process\":{\"pid\":7},\"pty\":{\"size\":{\"cols\":1,\"rows\":2}}}", true },
                { MESSAGE_RESIZE, "{\"process\":{\"pid\":7},\"input\":{}}", false },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct json *j = parse(cases[i].text);
                struct message_command m;
                struct err err = { 0 };

                assert_int_equal(message_command_read(cases[i].about, j, &m, &err), cases[i].good ? 0 : -EINVAL);
                (void) json_free(j);
        }
}

static void files_take_only_their_members(void **state) {
        struct json *j =
                parse("{\"path\":\"p\",\"recursive\":true,\"includeEntry\":true,\"allowNetworkMounts\":false}");
        struct message_file m;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(message_file_read(MESSAGE_WATCH, j, &m, &err), 0);
        assert_true(m.recursive && m.with_entry);
        assert_int_equal(message_file_read(MESSAGE_PATH, j, &m, &err), -EINVAL);
        assert_int_equal(message_file_read(MESSAGE_LIST, j, &m, &err), -EINVAL);
        assert_int_equal(message_file_read(MESSAGE_MOVE, j, &m, &err), -EINVAL);
        (void) json_free(j);
}

static void check_bytes(const char *base64, int r, const char *expected) {
        struct evbuffer *b = evbuffer_new();
        char got[64] = "";

        assert_int_equal(message_bytes(base64, b), r);
        if (r == 0) {
                assert_int_equal(evbuffer_get_length(b), strlen(expected));
                (void) evbuffer_remove(b, got, sizeof(got));
                assert_string_equal(got, expected);
        }
        evbuffer_free(b);
}

static void bytes_are_base64_of_either_kind(void **state) {
        struct evbuffer *b = evbuffer_new();
        char *large = malloc(100001);

        (void) state;
        check_bytes("", 0, "");
        check_bytes("aGVsbG8=", 0, "hello");
        check_bytes("aGVsbG8", 0, "hello");
        check_bytes("Pz8_", 0, "???");
        check_bytes("Pz8/", 0, "???");
        check_bytes("a", -EINVAL, NULL);
        check_bytes("a===", -EINVAL, NULL);
        check_bytes("aGVs bG8=", -EINVAL, NULL);
        check_bytes("aGVs=G8=", -EINVAL, NULL);
        memset(large, 'A', 100000);
        large[100000] = '\0';
        assert_int_equal(message_bytes(large, b), 0);
        assert_int_equal(evbuffer_get_length(b), 75000);
        free(large);
        evbuffer_free(b);
}

static void events_are_e2bs(void **state) {
        static char message[MESSAGE_OUTPUT], bytes[AP_CHUNK];
        size_t n = message_output(message, MESSAGE_PTY, "hi", 2);

        (void) state;
        assert_int_equal(n, strlen("{\"event\":{\"data\":{\"pty\":\"aGk=\"}}}"));
        assert_memory_equal(message + ENVD_ENVELOPE, "{\"event\":{\"data\":{\"pty\":\"aGk=\"}}}", n);
        n = message_output(message, MESSAGE_STDERR, bytes, sizeof(bytes));
        assert_true(n + ENVD_ENVELOPE <= sizeof(message));
        assert_memory_equal(message + ENVD_ENVELOPE + n - 4, "\"}}}", 4);
        assert_json(message_ended(&(struct ap_exit){ .code = 1 }, 0),
                    "{\"event\":{\"end\":{\"error\":\"exit status 1\",\"exitCode\":1,\"exited\":true,\"status\":\"exit "
                    "status 1\"}}}");
        assert_json(message_ended(&(struct ap_exit){ .signalled = 1, .code = 9 }, 0),
                    "{\"event\":{\"end\":{\"error\":\"signal: killed\",\"exitCode\":-1,\"exited\":false,\"status\":"
                    "\"signal: killed\"}}}");
        assert_json(message_gap(UINT64_MAX), "{\"event\":{\"gap\":{\"bytes\":\"18446744073709551615\"}}}");
}

static void entries_say_what_a_link_leads_to(void **state) {
        static const struct envd_user users[] = { { "user", "/home/user", 1000, 1000 }, { "root", "/root", 0, 0 } };
        struct fp_entry e = { .mode = S_IFLNK | 0777,
                              .target_mode = S_IFDIR | 0750,
                              .uid = 1000,
                              .gid = 12,
                              .size = 1ull << 40,
                              .path = "/a/link",
                              .target = "/b" };

        (void) state;
        e.xattrs[0] = (struct fp_xattr){ "user.e2b.k", (const uint8_t *) "v", 1 };
        e.xattrs[1] = (struct fp_xattr){ "user.else", (const uint8_t *) "v", 1 };
        e.n_xattrs = 2;
        assert_json(
                message_entry(&e, users, 2),
                "{\"group\":\"12\",\"metadata\":{\"k\":\"v\"},\"mode\":488,\"modifiedTime\":\"1970-01-01T00:00:00Z\","
                "\"name\":\"link\",\"owner\":\"user\",\"path\":\"/a/link\",\"permissions\":\"Lrwxrwxrwx\",\"size\":"
                "\"1099511627776\",\"symlinkTarget\":\"/b\",\"type\":\"FILE_TYPE_DIRECTORY\"}");
}

static void unknown_events_are_none(void **state) {
        (void) state;
        assert_null(message_event(FP_OVERFLOW, "", NULL));
        assert_null(message_event(0, "", json_new_object()));
        assert_null(message_event(77, "", NULL));
        assert_json(message_event(FP_MODIFY, "a/b", NULL), "{\"name\":\"a/b\",\"type\":\"EVENT_TYPE_WRITE\"}");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(start_has_defaults),
                cmocka_unit_test(start_takes_everything),
                cmocka_unit_test(errors_name_the_member),
                cmocka_unit_test(commands_take_only_their_members),
                cmocka_unit_test(files_take_only_their_members),
                cmocka_unit_test(bytes_are_base64_of_either_kind),
                cmocka_unit_test(events_are_e2bs),
                cmocka_unit_test(entries_say_what_a_link_leads_to),
                cmocka_unit_test(unknown_events_are_none),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
