/* fuzz_plan.c - any bytes as a policy, compiled for every kind of machine: a plan has one document and one hash. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "json/json.h"
#include "plan/plan.h"

enum { INPUT_MAX = 16384 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok) {
        if (!ok)
                abort();
}

/* The last two bytes choose the switches and the machine, so that seeds are readable: a policy ending in "# 0X". */
static void compile(const struct policy *policy, unsigned off, unsigned bits) {
        const struct plan_facts facts = {
                .rootless = bits & 1,
                .caller_uid = bits & 2 ? 1000 : 0,
                .landlock_abi = (int) (bits >> 2 & 7),
                .usr_links = { bits & 32 ? "/lib" : NULL },
                .usr_dirs = { bits & 32 ? NULL : "/lib64" },
        };
        const struct plan_request request = { .off = off & 7, .sensitive_mounts = off & 8 };
        CLEANUP(json_freep) struct json *doc = NULL;
        char first[HASH_TEXT], second[HASH_TEXT];
        static struct plan plan;
        struct err err = { 0 };

        if (plan_compile(policy, &request, &facts, &plan, &err) < 0) {
                must(err.msg[0] && err.code < 0);
                return;
        }
        must(plan.n_mounts <= PLAN_MOUNTS && plan.n_nodes <= PLAN_NODES && plan.n_deviations <= PLAN_DEVIATIONS);
        must(plan.n_rlimits <= PLAN_RLIMITS && plan.tmpfs_bytes < policy->limits.memory_bytes);
        must(plan_json(&plan, &doc, &err) == 0);
        must(plan_hash(&plan, first, &err) == 0 && plan_hash(&plan, second, &err) == 0);
        must(strcmp(first, second) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        CLEANUP(json_freep) struct json *doc = NULL;
        static struct policy policy;
        struct err err = { 0 };

        if (size < 2 || size > INPUT_MAX || json_parse_yaml("fuzz", (const char *) data, size, &doc, NULL, &err) < 0)
                return 0;
        policy_default(&policy);
        if (policy_decode(doc, &policy, &err) == 0)
                compile(&policy, data[size - 2], data[size - 1]);
        policy_done(&policy);
        return 0;
}
