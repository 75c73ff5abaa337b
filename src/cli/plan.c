/* plan.c - `gabion plan`: the exact list of what a command would get, without starting anything. */
#include "plan/plan.h"

#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "json/json.h"
#include "run/run.h"

int cmd_plan(int argc, char **argv) {
        static struct plan plan;
        CLEANUP(json_freep) struct json *doc = NULL;
        struct run_options o;
        struct err err = { 0 };
        char hash[HASH_TEXT];
        const char *json;
        int r = cli_run_options(argc, argv, &o, &json);

        if (r != -1)
                return r;
        if (run_plan(&o, &plan, &err) < 0 || plan_hash(&plan, hash, &err) < 0 || plan_json(&plan, &doc, &err) < 0)
                return cli_fail(&err);
        json_set_str(doc, "plan", hash);
        return cli_print(doc, json != NULL);
}
