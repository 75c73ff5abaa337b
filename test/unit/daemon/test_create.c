/* test_create.c - the body of "create a sandbox": what SDKs send is taken, everything else is refused by its name. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "daemon/create.h"
#include "json/json.h"

static int decode(const char *text, bool v2, struct create *ret, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;

        *err = (struct err){ 0 };
        assert_int_equal(json_parse("request", text, strlen(text), &doc, err), 0);
        return create_decode(doc, v2, CREATE_TIMEOUT_MAX, ret, err);
}

static void refuses(const char *text, int code, const char *part) {
        struct create c;
        struct err err;
        int r = decode(text, true, &c, &err);

        if (r != code || !strstr(err.msg, part))
                fail_msg("%s: %d '%s'; wanted %d '%s'", text, r, err.msg, code, part);
        create_done(&c);
}

static void what_javascript_sends_is_taken(void **state) {
        struct create c;
        struct err err;

        (void) state;
        assert_int_equal(
                decode("{\"templateID\":\"base\",\"timeout\":300,\"metadata\":{\"b\":\"2\",\"a\":\"1\"},"
                       "\"envVars\":{\"K\":\"v=1\",\"E\":\"\"},\"autoPause\":false,\"allow_internet_access\":true}",
                       true, &c, &err),
                0);
        assert_string_equal(c.template, "base");
        assert_int_equal(c.timeout_s, 300);
        assert_string_equal(c.metadata, "{\"a\":\"1\",\"b\":\"2\"}");
        assert_int_equal(c.n_vars, 2);
        assert_int_equal(c.n_env, 9);
        assert_memory_equal(c.env, "K=v=1\0E=\0", 9);
        assert_true(c.internet && !c.private_ports && !c.network && !c.name[0]);
        create_done(&c);
}

static void what_python_sends_is_taken(void **state) {
        struct create c;
        struct err err;

        (void) state;
        assert_int_equal(
                decode("{\"templateID\":\"base\",\"timeout\":300,\"metadata\":{},\"envVars\":{},\"secure\":true,"
                       "\"allow_internet_access\":false,\"mcp\":null,\"network\":null,\"iam\":null,"
                       "\"volumeMounts\":[],\"autoResume\":{\"enabled\":false}}",
                       false, &c, &err),
                0);
        assert_false(c.internet);
        assert_string_equal(c.metadata, "{}");
        assert_int_equal(c.n_env, 0);
        create_done(&c);
}

static void versions_differ_in_their_timeout(void **state) {
        struct create c;
        struct err err;

        (void) state;
        assert_int_equal(decode("{\"templateID\":\"base\"}", false, &c, &err), 0);
        assert_int_equal(c.timeout_s, 15);
        create_done(&c);
        assert_int_equal(decode("{\"templateID\":\"base\"}", true, &c, &err), 0);
        assert_int_equal(c.timeout_s, 300);
        create_done(&c);
}

static void network_is_kept_without_nulls(void **state) {
        AUTO_FREE char *text = NULL;
        struct create c;
        struct err err;

        (void) state;
        assert_int_equal(
                decode("{\"templateID\":\"base\",\"name\":\"my-box\",\"network\":{\"allowOut\":[\"a.b\"],\"denyOut\":null,"
                       "\"allowPublicTraffic\":false,\"maskRequestHost\":\"localhost:${PORT}\",\"httpsPorts\":[443]}}",
                       true, &c, &err),
                0);
        assert_true(c.private_ports);
        assert_string_equal(c.name, "my-box");
        assert_string_equal(c.mask_host, "localhost:${PORT}");
        assert_int_equal(json_text(c.network, false, &text, &err), 0);
        assert_string_equal(text, "{\"allowOut\":[\"a.b\"],\"allowPublicTraffic\":false,\"httpsPorts\":[443],"
                                  "\"maskRequestHost\":\"localhost:${PORT}\"}");
        create_done(&c);
}

static void wrong_types_and_values_are_named(void **state) {
        (void) state;
        refuses("{}", -EINVAL, "templateID: is required");
        refuses("[]", -EINVAL, "request");
        refuses("{\"templateID\":7}", -EINVAL, "templateID");
        refuses("{\"templateID\":\"\"}", -EINVAL, "templateID");
        refuses("{\"templateID\":null}", -EINVAL, "templateID: is required");
        refuses("{\"templateID\":\"b\",\"timeout\":-1}", -EINVAL, "timeout");
        refuses("{\"templateID\":\"b\",\"timeout\":0}", -EINVAL, "timeout");
        refuses("{\"templateID\":\"b\",\"timeout\":1.5}", -EINVAL, "timeout");
        refuses("{\"templateID\":\"b\",\"timeout\":\"9\"}", -EINVAL, "timeout");
        refuses("{\"templateID\":\"b\",\"timeout\":86401}", -EINVAL, "timeout");
        refuses("{\"templateID\":\"b\",\"timeout\":99999999999}", -EINVAL, "timeout");
        refuses("{\"templateID\":\"b\",\"metadata\":[]}", -EINVAL, "metadata");
        refuses("{\"templateID\":\"b\",\"metadata\":{\"a\":1}}", -EINVAL, "metadata: 'a'");
        refuses("{\"templateID\":\"b\",\"envVars\":{\"a\":null}}", -EINVAL, "envVars: 'a'");
        refuses("{\"templateID\":\"b\",\"envVars\":{\"a=b\":\"\"}}", -EINVAL, "envVars: 'a=b'");
        refuses("{\"templateID\":\"b\",\"envVars\":{\"\":\"\"}}", -EINVAL, "envVars");
        refuses("{\"templateID\":\"b\",\"secure\":\"yes\"}", -EINVAL, "secure");
        refuses("{\"templateID\":\"b\",\"network\":[]}", -EINVAL, "network");
        refuses("{\"templateID\":\"b\",\"network\":{\"httpsPorts\":[0]}}", -EINVAL, "httpsPorts[0]");
        refuses("{\"templateID\":\"b\",\"network\":{\"allowPublicTraffic\":1}}", -EINVAL, "allowPublicTraffic");
        refuses("{\"templateID\":\"b\",\"mcp\":\"x\"}", -EINVAL, "mcp");
        refuses("{\"templateID\":\"b\",\"name\":\"A\"}", -EINVAL, "name");
        refuses("{\"templateID\":\"b\",\"name\":\"-a\"}", -EINVAL, "name");
        refuses("{\"templateID\":\"b\",\"name\":\"abcdefghijabcdefghij\"}", -EINVAL, "name");
}

static void unknown_members_are_named(void **state) {
        (void) state;
        refuses("{\"templateID\":\"b\",\"timeoutMs\":1}", -EINVAL, "timeoutMs: unknown key; did you mean 'timeout'?");
        refuses("{\"templateID\":\"b\",\"network\":{\"denyIn\":[]}}", -EINVAL, "network.denyIn: unknown key");
        refuses("{\"templateID\":\"b\",\"autoResume\":{\"x\":1}}", -EINVAL, "autoResume.x: unknown key");
}

static void what_cannot_be_done_is_not_ignored(void **state) {
        (void) state;
        refuses("{\"templateID\":\"b\",\"autoPause\":true}", -ENOSYS, "autoPause");
        refuses("{\"templateID\":\"b\",\"autoResume\":{\"enabled\":true}}", -ENOSYS, "autoResume");
        refuses("{\"templateID\":\"b\",\"volumeMounts\":[{\"name\":\"v\",\"path\":\"/v\"}]}", -ENOSYS, "volumeMounts");
        refuses("{\"templateID\":\"b\",\"iam\":{}}", -ENOSYS, "iam");
        refuses("{\"templateID\":\"b\",\"autoPauseMemory\":false}", -EINVAL, "autoPauseMemory");
        refuses("{\"templateID\":\"b\",\"secure\":false,\"network\":{\"allowPublicTraffic\":false}}", -EINVAL,
                "secure");
}

static void sizes_are_bounded(void **state) {
        struct buf text = BUF_INIT(1 << 20);

        (void) state;
        buf_addf(&text, "{\"templateID\":\"b\",\"metadata\":{");
        for (unsigned i = 0; i <= CREATE_PAIRS; i++)
                buf_addf(&text, "%s\"k%u\":\"\"", i ? "," : "", i);
        buf_addf(&text, "}}");
        refuses(buf_str(&text), -EINVAL, "metadata: must have at most 64 members");
        buf_done(&text);
        text = BUF_INIT(1 << 20);
        buf_addf(&text, "{\"templateID\":\"b\",\"envVars\":{\"A\":\"%0*d\"}}", CREATE_ENV, 0);
        refuses(buf_str(&text), -EINVAL, "envVars: must have at most");
        buf_done(&text);
        text = BUF_INIT(1 << 20);
        buf_addf(&text, "{\"templateID\":\"b\",\"metadata\":{\"A\":\"%0*d\"}}", CREATE_METADATA, 0);
        refuses(buf_str(&text), -EINVAL, "metadata: must have at most");
        buf_done(&text);
        text = BUF_INIT(1 << 20);
        buf_addf(&text, "{\"templateID\":\"%0*d\"}", CREATE_TEMPLATE, 0);
        refuses(buf_str(&text), -EINVAL, "templateID");
        buf_done(&text);
}

static int timeout(const char *text, bool required, uint32_t *s) {
        CLEANUP(json_freep) struct json *doc = NULL;
        struct err err = { 0 };

        assert_int_equal(json_parse("request", text, strlen(text), &doc, &err), 0);
        return create_decode_timeout(doc, 0, 1000, required, s, &err);
}

static void timeouts_are_read(void **state) {
        uint32_t s = 300;

        (void) state;
        assert_int_equal(timeout("{}", false, &s), 0);
        assert_int_equal(s, 300);
        assert_int_equal(timeout("{}", true, &s), -EINVAL);
        assert_int_equal(timeout("{\"timeout\":0,\"memory\":true}", true, &s), 0);
        assert_int_equal(s, 0);
        assert_int_equal(timeout("{\"timeout\":1001}", true, &s), -EINVAL);
        assert_int_equal(timeout("{\"timeout\":-5}", true, &s), -EINVAL);
        assert_int_equal(timeout("{\"timeout\":5,\"x\":1}", true, &s), -EINVAL);
        s = 5000; /* a default above what the operator allows */
        assert_int_equal(timeout("{}", false, &s), 0);
        assert_int_equal(s, 1000);
}

static void network_replaces_everything(void **state) {
        static const char good[] = "{\"allowOut\":[\"1.2.3.4\"],\"rules\":null,\"allow_internet_access\":false,"
                                   "\"dropExisting\":true}";
        static const char bad[] = "{\"allowPublicTraffic\":false}";
        CLEANUP(json_freep) struct json *doc = NULL, *other = NULL, *network = NULL;
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };
        bool internet = true, drop = false;

        (void) state;
        assert_int_equal(json_parse("request", good, strlen(good), &doc, &err), 0);
        assert_int_equal(create_decode_network(doc, &network, &internet, &drop, &err), 0);
        assert_false(internet);
        assert_true(drop);
        assert_int_equal(json_text(network, false, &text, &err), 0);
        assert_string_equal(text, "{\"allowOut\":[\"1.2.3.4\"]}");
        assert_int_equal(json_parse("request", bad, strlen(bad), &other, &err), 0);
        assert_int_equal(create_decode_network(other, &network, &internet, &drop, &err), -EINVAL);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_javascript_sends_is_taken),
                cmocka_unit_test(what_python_sends_is_taken),
                cmocka_unit_test(versions_differ_in_their_timeout),
                cmocka_unit_test(network_is_kept_without_nulls),
                cmocka_unit_test(wrong_types_and_values_are_named),
                cmocka_unit_test(unknown_members_are_named),
                cmocka_unit_test(what_cannot_be_done_is_not_ignored),
                cmocka_unit_test(sizes_are_bounded),
                cmocka_unit_test(timeouts_are_read),
                cmocka_unit_test(network_replaces_everything),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
