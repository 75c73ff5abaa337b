/* prove.c - one proof: plant, look, attack, look again, judge. */
#include "prove/prove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cgroup/cgroup.h"
#include "json/json.h"
#include "probe/probe.h"
#include "prove/attack.h"
#include "prove/dangerous.h"
#include "prove/observe.h"
#include "prove/outside.h"

static int probe_write(const char *path, struct err *err) {
        AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555);

        if (fd < 0 || fd_write_all(fd, gabion_probe_image, gabion_probe_image_size) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "probe: %s: %s", path, strerror(errno));
        return 0;
}

static void facts_fill(struct prove_report *r) {
        struct utsname uts;

        clock_rfc3339(r->time);
        (void) uname(&uts);
        (void) snprintf(r->kernel, sizeof(r->kernel), "%.60s", uts.release);
        (void) snprintf(r->machine, sizeof(r->machine), "%.15s", uts.machine);
        (void) snprintf(r->version, sizeof(r->version), "%s", GABION_VERSION);
        build_id(r->build);
        r->rootless = geteuid() != 0;
        hash_text(r->probe, gabion_probe_image, gabion_probe_image_size);
        dangerous_exist(r->call_exists);
}

/* Is a control group of our sandbox still there? Its name is in the statement. */
static bool has_group(const struct prove_report *r) {
        CLEANUP(json_freep) struct json *doc = NULL;
        struct cgroup_host *host = NULL;
        struct err err = { 0 };
        const char *name, *parent;
        bool found = false;

        if (json_parse("evidence", r->evidence, strlen(r->evidence), &doc, &err) < 0)
                return false;
        name = json_get_str(json_get(json_get(doc, "limits"), "cgroup"), "name");
        if (!name || cgroup_host_find(&host, &err) < 0)
                return false;
        for (size_t i = 0; (parent = cgroup_parent(host, i)); i++) {
                char path[512];

                (void) snprintf(path, sizeof(path), "%.400s/%.100s", parent, name);
                found |= parent[0] && access(path, F_OK) == 0;
        }
        (void) cgroup_host_free(host);
        return found;
}

static void own_check(const struct attack_outcome *outcome, struct prove_report *r) {
        check_add(r, "every control was read back as planned", !outcome->mismatch[0], outcome->mismatch);
        check_add(r, "no control group of the sandbox is left", !has_group(r), NULL);
}

/* Plants, looks, attacks, looks again, removes. */
static int prove_one(const struct attack *a, const char *groups, struct prove_report *ret, struct err *err) {
        struct canary c;
        struct outside before;
        struct attack_outcome *outcome =
                mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        uint64_t start = clock_mono_ns();
        char note[64];
        size_t left;
        int r;

        if (outcome == MAP_FAILED)
                return err_set(err, -errno, ERR_INTERNAL, "prove: memory: %s", strerror(errno));
        facts_fill(ret);
        outside_look(&before);
        r = canary_plant(&c, err);
        c.groups = groups;
        if (r == 0)
                r = probe_write(c.probe, err);
        if (r == 0)
                r = attack_make(a, &c, outcome, ret, err);
        if (r == 0) {
                canary_check(&c, ret);
                outside_check(&before, ret);
                left = observe_left(c.name, &ret->posture);
                (void) snprintf(note, sizeof(note), "%zu left", left);
                check_add(ret, "no process of the sandbox is left", left == 0, left ? note : NULL);
                if (!a->command)
                        own_check(outcome, ret);
        }
        canary_remove(&c);
        outside_restore(&before);
        outside_done(&before);
        (void) munmap(outcome, sizeof(*outcome));
        ret->seconds = (double) (clock_mono_ns() - start) / 1e9;
        return r;
}

int prove_run(const struct run_options *options, const char *groups, struct prove_report *ret, struct err *err) {
        const struct attack a = { .options = options };
        int r;

        memset(ret, 0, sizeof(*ret));
        (void) str_copy(ret->subject, sizeof(ret->subject), "gabion");
        r = policy_hash(options->policy, ret->policy, err);
        if (r < 0)
                return r;
        if (options->policy->n_mounts == POLICY_MOUNTS)
                return err_set(err, -E2BIG, ERR_LIMIT, "prove: the policy must leave one mount free for the probe");
        return prove_one(&a, groups, ret, err);
}

int prove_other(const char *name, const char *command, bool bundle, const char *groups, struct prove_report *ret,
                struct err *err) {
        const struct attack a = { .command = command, .bundle = bundle };

        memset(ret, 0, sizeof(*ret));
        (void) snprintf(ret->subject, sizeof(ret->subject), "%.31s", name);
        if (str_copy(ret->command, sizeof(ret->command), command) < 0)
                return err_set(err, -E2BIG, ERR_INVALID, "the command is too long");
        ret->config = strstr(command, "--bundle {bundle}") ? bundle_config() : NULL;
        return prove_one(&a, groups, ret, err);
}
