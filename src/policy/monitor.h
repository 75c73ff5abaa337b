/* monitor.h - what is watched while a sandbox runs, and what happens then. Part of policy.h, which includes it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct field_ctx;
struct json;
struct policy;

enum { POLICY_WATCHES = 16, POLICY_EXPECTED = 32, POLICY_EXPECTED_NAME = 128 };

enum policy_action { POLICY_LOG, POLICY_FREEZE, POLICY_KILL };

struct policy_names {
        size_t n;
        char names[POLICY_EXPECTED][POLICY_EXPECTED_NAME];
};

struct policy_rule_calls {
        bool on;
        uint32_t over; /* refused calls ... */
        uint64_t within_ms;
        enum policy_action action;
};

struct policy_rule_names {
        bool on;
        enum policy_action action;
        struct policy_names expect; /* others are unexpected */
};

struct policy_rule_writes {
        bool on; /* below filesystem.watch */
        enum policy_action action;
};

struct policy_rule_resources {
        bool on;
        uint64_t memory_bytes; /* 0: not looked at */
        uint32_t pids;
        enum policy_action action;
};

/* Every rule is off unless it is given. */
struct policy_monitor {
        enum policy_action on_drift; /* the state differs from the plan; written `warn` for POLICY_LOG */
        uint64_t interval_ms;        /* how often the state is read */
        struct policy_rule_calls refused_calls;
        struct policy_rule_writes writes;
        struct policy_rule_resources resources;
        struct policy_rule_names programs, hosts;
};

const char *policy_action_name(enum policy_action a);

/* Private to policy/: the members of struct policy. */
void policy_monitor_default(struct policy *p);
int policy_monitor_decode(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err);
int policy_watch_decode(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err);
int policy_monitor_check(const struct policy *p, struct err *err);
struct json *policy_monitor_json(const struct policy *p);
struct json *policy_watch_json(const struct policy *p);
