/* Text written member by member is what the tree would have given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "json/json.h"

static void text_is_canonical(void **state) {
        struct buf b = BUF_INIT(4096);
        struct json_emit e = { .to = &b };
        CLEANUP(json_freep) struct json *doc = NULL;
        struct json *tree = json_new_object();
        AUTO_FREE char *again = NULL;
        struct err err = { 0 };

        (void) state;
        json_emit_object(&e, NULL);
        json_emit_array(&e, "a");
        json_emit_int(&e, NULL, -1);
        json_emit_str(&e, NULL, "x");
        json_emit_object(&e, NULL);
        json_emit_close(&e, '}');
        json_emit_close(&e, ']');
        json_emit_object(&e, "b");
        json_emit_bool(&e, "a", true);
        json_emit_bool(&e, "z", false);
        json_emit_close(&e, '}');
        json_emit_int(&e, "c", 9007199254740991);
        json_emit_str(&e, "d", "quote \" back \\ slash / del \x7f tab \t nul-free \xc3\xa9 \xff \xe2\x80\xa8 end");
        json_emit_text(&e, "e", "del \x7f line\n bell \a \xc3\xa9 \xff");
        json_emit_text(&e, "f", NULL);
        json_set_int(tree, "z", 1);
        json_set_str(tree, "y", "\n");
        json_emit_tree(&e, "g", tree);
        json_emit_close(&e, '}');
        assert_string_equal(buf_str(&b),
                            "{\"a\":[-1,\"x\",{}],\"b\":{\"a\":true,\"z\":false},\"c\":9007199254740991,"
                            "\"d\":\"quote \\\" back \\\\ slash / del ? tab ? nul-free \xc3\xa9 "
                            "\xef\xbf\xbd \xe2\x80\xa8 end\",\"e\":\"del \x7f line\\n bell \\u0007 \xc3\xa9 "
                            "\xef\xbf\xbd\",\"f\":null,\"g\":{\"y\":\"\\n\",\"z\":1}}");
        assert_int_equal(json_parse("x", b.p, b.len, &doc, &err), 0);
        assert_int_equal(json_text(doc, false, &again, &err), 0);
        assert_string_equal(again, buf_str(&b));
        buf_done(&b);
}

static void keys_out_of_order_are_our_bug(void **state) {
        pid_t pid = fork();
        int status;

        (void) state;
        if (pid == 0) {
                struct buf b = BUF_INIT(4096);
                struct json_emit e = { .to = &b };

                json_emit_object(&e, NULL);
                json_emit_int(&e, "b", 1);
                json_emit_int(&e, "b", 2); /* twice is out of order too */
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(text_is_canonical),
                cmocka_unit_test(keys_out_of_order_are_our_bug),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
