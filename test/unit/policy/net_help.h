/* net_help.h - what the tests of the network part share: policies from YAML, and verdicts as text. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/own.h"
#include "json/json.h"
#include "policy/decode.h"
#include "policy/net.h"
#include "policy/net_flags.h"
#include "policy/policy.h"

/* "version: 1\nnetwork:" and then `network`, which begins with a blank or a line end. */
static inline int net_decode_yaml(const char *network, struct policy *p, struct err *err) {
        CLEANUP(json_lines_freep) struct json_lines *lines = NULL;
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *yaml = malloc(strlen(network) + 32);
        struct field_ctx ctx = { .what = "p" };

        (void) snprintf(yaml, strlen(network) + 32, "version: 1\nnetwork:%s", network);
        if (json_parse_yaml("p", yaml, strlen(yaml), &doc, &lines, err) < 0)
                fail_msg("%s", err->msg);
        ctx.lines = lines;
        return policy_decode_at(&ctx, doc, p, err);
}

/* The caller does policy_done(). */
static inline void net_accept(const char *network, struct policy *p) {
        struct err err = { 0 };

        policy_default(p);
        if (net_decode_yaml(network, p, &err) < 0)
                fail_msg("%s: %s", network, err.msg);
}

/* The member "network" of the canonical form as text; the caller frees it. */
static inline char *net_text(const struct policy *p) {
        CLEANUP(json_freep) struct json *j = policy_net_json(p);
        struct err err = { 0 };
        char *text = NULL;

        assert_int_equal(json_text(j, false, &text, &err), 0);
        return text;
}

/* What decides, from the network parts of a policy and a ceiling (NULL: none) and a --resolve (NULL: none). */
static inline struct policy_egress *net_egress(const char *network, const char *ceiling, const char *resolve) {
        static struct policy p, above;
        struct policy_resolve to;
        struct policy_egress *e = NULL;
        struct err err = { 0 };

        net_accept(network, &p);
        net_accept(ceiling ? ceiling : " {}", &above);
        if (resolve && policy_net_flag_resolve(resolve, &to, &err) < 0)
                fail_msg("%s", err.msg);
        if (policy_egress_new(&p, ceiling ? &above : NULL, &to, resolve != NULL, &e, &err) < 0)
                fail_msg("%s", err.msg);
        policy_done(&p);
        policy_done(&above);
        return e;
}
