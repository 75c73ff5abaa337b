/*
 * record.c - what is on disk of a sandbox: one JSON object in its slot file, written before anything is made and again
 * when it is ready. A warden that starts finds everything from these files. They lie in a directory that only root may
 * enter; still they are read as strictly as a request.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "network.h"
#include "state.h"

enum { RECORD_BYTES = 3 * 1024 * 1024, STAT_FIELDS = 20 /* from the state on to the start time */ };

void record_done(struct record *r) {
        free(r->policy);
        free(r->evidence);
        free(r->egress);
        r->policy = r->evidence = r->egress = NULL;
}

void record_from(struct record *r, const struct box *b) {
        *r = (struct record){ .state = WP_RUNNING,
                              .slot = b->slot,
                              .pid = (uint32_t) b->pid,
                              .uid = b->uid,
                              .start = b->start,
                              .created_ms = b->created_ms,
                              .offset = b->offset };
        memcpy(r->id, b->id, sizeof(r->id));
        memcpy(r->tenant, b->tenant, sizeof(r->tenant));
        memcpy(r->hostname, b->hostname, sizeof(r->hostname));
        memcpy(r->run, warden.run, sizeof(r->run));
        if (!b->net)
                return;
        memcpy(r->egress_id, b->net->id, sizeof(r->egress_id));
        r->egress = strdup(b->net->document);
        r->netns = b->net->netns;
        r->own_certificates = b->net->own_certificates;
}

static const char *const states[] = { "making", "pooled", "running", NULL };

/* The large ones are text already: they are put in as they are. */
static void put(struct json_emit *e, const char *key, const char *text) {
        if (!text)
                return;
        buf_addf(e->to, ",\"%s\":", key);
        buf_add(e->to, text, strlen(text));
}

int record_write(int fd, const struct record *r, struct err *err) {
        struct buf all = BUF_INIT(RECORD_BYTES);
        struct json_emit e = { .to = &all };
        int n;

        json_emit_object(&e, NULL);
        json_emit_int(&e, "created_ms", (int64_t) r->created_ms);
        json_emit_int(&e, "disk_limit", (int64_t) r->disk_limit);
        if (r->egress_id[0])
                json_emit_str(&e, "egress_id", r->egress_id);
        json_emit_str(&e, "evidence_hash", r->evidence_hash);
        json_emit_str(&e, "hostname", r->hostname);
        json_emit_str(&e, "id", r->id);
        json_emit_int(&e, "memory_limit", (int64_t) r->memory_limit);
        if (r->egress_id[0])
                json_emit_int(&e, "netns", (int64_t) r->netns);
        json_emit_int(&e, "offset", (int64_t) r->offset);
        if (r->egress_id[0])
                json_emit_bool(&e, "own_certificates", r->own_certificates);
        json_emit_int(&e, "pid", r->pid);
        json_emit_str(&e, "policy_hash", r->policy_hash);
        json_emit_str(&e, "run", r->run);
        json_emit_int(&e, "slot", r->slot);
        json_emit_int(&e, "start", (int64_t) r->start);
        json_emit_str(&e, "state", states[r->state]);
        json_emit_str(&e, "tenant", r->tenant);
        json_emit_int(&e, "uid", r->uid);
        json_emit_int(&e, "version", 1);
        put(&e, "policy", r->policy);
        put(&e, "evidence", r->evidence);
        put(&e, "egress", r->egress);
        json_emit_close(&e, '}');
        n = all.bad || pwrite(fd, all.p, all.len, 0) != (ssize_t) all.len || ftruncate(fd, (off_t) all.len) < 0 ? -EIO
                                                                                                                : 0;
        buf_done(&all);
        return n < 0 ? err_set(err, n, ERR_INTERNAL, "record of sandbox %s: it cannot be written", r->id) : 0;
}

static int keep_text(const struct field_ctx *ctx, const struct json *value, void *at, struct err *err) {
        return json_is_object(value) ? json_text(value, false, at, err) : field_error(ctx, err, "an object is wanted");
}

static const struct field fields[] = {
#define AT(member) offsetof(struct record, member)
#define STR(key, member)                                                                                               \
        { key, FIELD_STR, AT(member), sizeof(((struct record *) 0)->member), 0, true, NULL, NULL }
#define U32(key, member)                                                                                               \
        { key, FIELD_U32, AT(member), UINT32_MAX, 0, true, NULL, NULL }
#define U64(key, member)                                                                                               \
        { key, FIELD_U64, AT(member), INT64_MAX, 0, true, NULL, NULL }
        STR("run", run),
        STR("id", id),
        { "state", FIELD_ENUM, AT(state), 0, 0, true, states, NULL },
        STR("tenant", tenant),
        STR("hostname", hostname),
        U32("slot", slot),
        U32("pid", pid),
        U64("start", start),
        U32("uid", uid),
        U64("created_ms", created_ms),
        U64("offset", offset),
        U64("memory_limit", memory_limit),
        U64("disk_limit", disk_limit),
        STR("policy_hash", policy_hash),
        STR("evidence_hash", evidence_hash),
        { "policy", FIELD_ANY, AT(policy), 0, 0, false, NULL, keep_text },
        { "evidence", FIELD_ANY, AT(evidence), 0, 0, false, NULL, keep_text },
        { "egress", FIELD_ANY, AT(egress), 0, 0, false, NULL, keep_text },
        { "egress_id", FIELD_STR, AT(egress_id), ID_TEXT, 0, false, NULL, NULL },
        { "netns", FIELD_U64, AT(netns), INT64_MAX, 0, false, NULL, NULL },
        { "own_certificates", FIELD_BOOL, AT(own_certificates), 0, 0, false, NULL, NULL },
        { "version", FIELD_U32, AT(version), 1, 1, true, NULL, NULL },
#undef AT
#undef STR
#undef U32
#undef U64
};

static int tree_read(int fd, struct json **ret, struct err *err) {
        AUTO_FREE char *text = malloc(RECORD_BYTES);
        int n = text ? (lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_upto(fd, text, RECORD_BYTES)) : -ENOMEM;

        return n < 0 ? err_set(err, n, ERR_INTERNAL, "record: %s", strerror(-n))
                     : json_parse("record", text, (size_t) n, ret, err);
}

int record_read(int fd, struct record *ret, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        const struct field_ctx ctx = { .what = "record" };
        struct record r = { 0 };
        int n = tree_read(fd, &doc, err);

        if (n == 0)
                n = field_decode(&ctx, doc, fields, ARRAY_SIZE(fields), &r, err);
        if (n < 0) {
                record_done(&r);
                return n;
        }
        *ret = r;
        return 0;
}

int record_policy(const struct record *r, struct policy *ret, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        int n = r->policy ? json_parse("policy", r->policy, strlen(r->policy), &doc, err)
                          : err_set(err, -ESTALE, ERR_INTERNAL, "record of sandbox %s: it has no policy", r->id);

        policy_default(ret);
        return n < 0 ? n : policy_decode(doc, ret, err);
}

int record_open(unsigned slot, int flags) {
        char name[CGROUP_NAME];
        int fd;

        (void) snprintf(name, sizeof(name), "sbx-%04u", slot);
        fd = openat(warden.slots_fd, name, flags | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int record_of(const struct box *b, struct record *ret, struct err *err) {
        AUTO_FD int fd = record_open(b->slot, O_RDONLY);
        int r = fd < 0 ? err_set(err, fd, ERR_INTERNAL, "record of sandbox %s: %s", b->id, strerror(-fd))
                       : record_read(fd, ret, err);

        if (r == 0 && !str_eq(ret->id, b->id)) {
                record_done(ret);
                return err_set(err, -ESTALE, ERR_INTERNAL, "record of sandbox %s: it is another's", b->id);
        }
        return r;
}

int record_tree(const struct box *b, struct json **ret, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FD int fd = record_open(b->slot, O_RDONLY);
        const char *id;
        int r = fd < 0 ? err_set(err, fd, ERR_INTERNAL, "record of sandbox %s: %s", b->id, strerror(-fd))
                       : tree_read(fd, &doc, err);

        if (r < 0)
                return r;
        id = json_get_str(doc, "id");
        if (!id || !str_eq(id, b->id))
                return err_set(err, -ESTALE, ERR_INTERNAL, "record of sandbox %s: it is another's", b->id);
        *ret = TAKE_PTR(doc);
        return 0;
}

uint64_t record_start_time(pid_t pid) {
        char path[32], text[1024], *at;
        uint64_t v = 0;

        (void) snprintf(path, sizeof(path), "%d/stat", (int) pid);
        if (fd_read_at(warden.proc_fd, path, text, sizeof(text)) < 0)
                return 0;
        at = strrchr(text, ')'); /* the name before it may hold anything */
        for (int i = 0; at && i < STAT_FIELDS; i++)
                at = strchr(at + 1, ' ');
        if (!at)
                return 0;
        at[1 + strcspn(at + 1, " ")] = '\0';
        return str_to_u64(at + 1, UINT64_MAX, &v) < 0 ? 0 : v;
}
