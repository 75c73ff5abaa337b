/* facts.c - the posture of the attacking process in words, for a terminal and for the page. Values read, never values
 * intended. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "json/json.h"
#include "prove/names.h"

struct facts {
        struct prove_fact *to;
        size_t n;
};

static void fact(struct facts *f, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void fact(struct facts *f, const char *name, const char *fmt, ...) {
        va_list ap;

        if (f->n == PROVE_FACTS)
                return;
        f->to[f->n].name = name;
        va_start(ap, fmt);
        (void) vsnprintf(f->to[f->n++].value, sizeof(f->to->value), fmt, ap);
        va_end(ap);
}

static void namespaces(struct facts *f, const struct prove_posture *p) {
        char own[80] = "", host[80] = "";

        for (unsigned i = 0; i < PROVE_NS; i++) {
                char *to = p->ns_new & BIT(i) ? own : host;

                if (p->ns_known & BIT(i))
                        (void) snprintf(to + strlen(to), 80 - strlen(to), "%s%s", to[0] ? " " : "", prove_ns_names[i]);
        }
        if (p->ns_known)
                fact(f, "namespaces", "own: %s; the host's: %s", own[0] ? own : "none", host[0] ? host : "none");
        else
                fact(f, "namespaces", "not readable by this user");
}

static void process(struct facts *f, const struct prove_posture *p) {
        const struct evidence_status *s = &p->status;
        char map[80];

        fact(f, "capabilities", "inheritable %llx, permitted %llx, effective %llx, bounding %llx, ambient %llx",
             (unsigned long long) s->inheritable, (unsigned long long) s->permitted, (unsigned long long) s->effective,
             (unsigned long long) s->bounding, (unsigned long long) s->ambient);
        fact(f, "no_new_privs", "%llu", (unsigned long long) s->no_new_privs);
        fact(f, "seccomp", "mode %llu, %llu filters", (unsigned long long) s->seccomp,
             (unsigned long long) s->seccomp_filters);
        namespaces(f, p);
        (void) snprintf(map, sizeof(map), "%.*s", (int) strcspn(p->uid_map, "\n"), p->uid_map);
        fact(f, "ids", "uid %llu on the host; map (inside, host, count):%s%s", (unsigned long long) s->uid[1],
             map[0] == ' ' ? "" : " ", map[0] ? map : "not readable");
}

static void limits(struct facts *f, const struct json *doc) {
        static const char *const files[] = { "memory.max",       "memory.limit_in_bytes", "pids.max",
                                             "cpu.cfs_quota_us", "cpu.cfs_period_us",     "cpu.max" };
        const struct json *group = json_get(json_get(json_get(doc, "limits"), "cgroup"), "files");
        char text[200] = "";

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                const char *value = json_get_str(group, files[i]);
                size_t n = strlen(text);

                if (value)
                        (void) snprintf(text + n, sizeof(text) - n, "%s%s %s", n ? ", " : "", files[i], value);
        }
        fact(f, "limits", "%s", text[0] ? text : "no control group");
}

size_t prove_facts(const struct prove_report *r, struct prove_fact ret[PROVE_FACTS]) {
        CLEANUP(json_freep) struct json *doc = NULL;
        struct facts f = { ret, 0 };
        struct err err = { 0 };
        const struct json *filter, *landlock;
        const char *hash;

        if (r->posture.seen)
                process(&f, &r->posture);
        else
                fact(&f, "process", "none of this machine runs the probe, or /proc does not show it");
        if (!r->evidence[0] || json_parse("evidence", r->evidence, strlen(r->evidence), &doc, &err) < 0)
                return f.n;
        filter = json_get(doc, "seccomp");
        landlock = json_get(doc, "landlock");
        hash = json_get_str(filter, "hash_read_back");
        fact(&f, "filter", "%s; %lld instructions, profile %s",
             hash ? hash : "not readable by a rootless supervisor; mode and number were checked",
             (long long) json_get_int(filter, "instructions", 0), json_get_str(filter, "profile"));
        fact(&f, "Landlock", "ABI %lld", (long long) json_get_int(landlock, "abi", 0));
        limits(&f, doc);
        fact(&f, "statement", "%s, everything that was read back", r->evidence_hash);
        return f.n;
}
