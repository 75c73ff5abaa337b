/* gabion.c - the embeddable face of run/. Adds nothing but a stable, dependency-free header. */
#include "lib/gabion.h"

#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "base/err.h"
#include "base/own.h"
#include "json/json.h"
#include "policy/policy.h"
#include "run/run.h"

static int policy_of(const char *text, struct policy *p, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        int r = 0;

        policy_done(p); /* of the run before */
        policy_default(p);
        if (text)
                r = json_parse("policy", text, strlen(text), &doc, err);
        return r == 0 && text ? policy_decode(doc, p, err) : r;
}

int gabion_run(const char *policy, const char *const argv[], struct gabion_result *ret, char *why) {
        static const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/user", "LANG=C.UTF-8",
                                           NULL };
        static struct policy p;
        static struct run_result res;
        struct run_options o = {
                .policy = &p,
                .argv = argv,
                .env = env,
                .agent = gabion_agent_image,
                .agent_bytes = gabion_agent_image_size,
        };
        struct err err = { 0 };
        int r = policy_of(policy, &p, &err);

        if (r == 0)
                r = run_command(&o, &res, &err);
        (void) snprintf(why, GABION_ERROR, "%s", r < 0 ? err.msg : "");
        if (r < 0)
                return r;
        *ret = (struct gabion_result){
                .exit_code = res.exit_code,
                .signal = res.signal,
                .duration_ms = res.duration_ms,
                .cpu_ms = res.cpu_ms,
                .memory_peak_bytes = res.memory_peak_bytes,
                .denials = (unsigned) res.n_denials,
        };
        (void) snprintf(ret->sandbox, sizeof(ret->sandbox), "%s", res.sandbox);
        (void) snprintf(ret->reason, sizeof(ret->reason), "%s", run_reason_name(res.reason));
        return 0;
}
