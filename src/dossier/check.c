/* check.c - checking a dossier, offline: with its text and one public key. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "dossier/dossier.h"
#include "json/json.h"

static int wrong(struct err *err, const char *what) {
        return err_set(err, -EBADMSG, ERR_INVALID, "not a valid dossier: %s", what);
}

/* "hex hex ...": how many. */
static ssize_t path_get(const char *text, uint8_t path[MERKLE_PATH][HASH_BYTES]) {
        size_t n = 0;

        while (*text) {
                if (n == MERKLE_PATH || str_unhex(path[n], HASH_BYTES, text) < 0)
                        return -EBADMSG;
                n++;
                text += 64;
                if (*text == ' ')
                        text++;
                else if (*text)
                        return -EBADMSG;
        }
        return (ssize_t) n;
}

/* Hashes that the records name. */
struct expected {
        char evidence[HASH_TEXT], plan[HASH_TEXT], policy[HASH_TEXT], receipt[HASH_TEXT];
};

static void hash_take(char dst[HASH_TEXT], const struct json *from, const char *key) {
        const char *hash = json_get_str(from, key);

        if (hash)
                (void) str_copy(dst, HASH_TEXT, hash);
}

static int record_facts(const char *record, const struct dossier_facts *f, struct expected *ex, struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        const struct json *metadata, *fields;
        const char *tenant, *sandbox;

        if (json_parse("record", record, strlen(record), &doc, err) < 0)
                return wrong(err, "a record is not JSON");
        metadata = json_get(doc, "metadata");
        fields = json_get(json_get(doc, "unmapped"), "fields");
        tenant = json_get_str(metadata, "tenant_uid");
        sandbox = json_get_str(json_get(json_get(doc, "device"), "container"), "uid");
        if (!tenant || !sandbox || !str_eq(tenant, f->tenant) || !str_eq(sandbox, f->sandbox))
                return wrong(err, "a record is of another sandbox");
        hash_take(ex->evidence, fields, "evidence");
        hash_take(ex->plan, fields, "plan");
        hash_take(ex->receipt, fields, "receipt");
        hash_take(ex->policy, json_get(doc, "policy"), "uid");
        return 0;
}

static int event_check(const struct json *one, uint64_t after, const struct audit_head *head,
                       const struct dossier_facts *f, struct expected *ex, struct err *err) {
        const char *record = json_get_str(one, "record"), *path_text = json_get_str(one, "path");
        int64_t index = json_get_int(one, "index", -1);
        uint8_t path[MERKLE_PATH][HASH_BYTES], prev[HASH_BYTES], hash[HASH_BYTES], leaf[HASH_BYTES], root[HASH_BYTES];
        ssize_t n = path_text ? path_get(path_text, path) : -1;
        struct err why = { 0 };
        uint64_t seq;

        if (!record || n < 0 || index < 0)
                return wrong(err, "an event has no record, path or index");
        if (audit_record_read(record, strlen(record), &seq, prev, hash, &why) < 0)
                return err_set(err, -EBADMSG, ERR_INVALID, "not a valid dossier: record at index %lld: %s",
                               (long long) index, why.msg);
        if (seq != (uint64_t) index + 1 || seq <= after)
                return wrong(err, "its records are out of order");
        merkle_leaf(leaf, hash, HASH_BYTES);
        merkle_root(&head->tree, root);
        if (merkle_check(leaf, (uint64_t) index, head->tree.size, (const uint8_t(*)[HASH_BYTES]) path, (size_t) n,
                         root) < 0)
                return err_set(err, -EBADMSG, ERR_INVALID,
                               "not a valid dossier: the signed head does not cover the record at index %lld",
                               (long long) index);
        return record_facts(record, f, ex, err);
}

static int another(struct err *err, const char *what) {
        return err_set(err, -EBADMSG, ERR_INVALID, "not a valid dossier: its %s is not the one that the log names",
                       what);
}

/* One member of the document of the start, written canonically, has the hash that a record names. */
static int part_check(const struct json *start, const char *key, const char *want, struct err *err) {
        AUTO_FREE char *text = NULL;
        char hash[HASH_TEXT];
        int r = json_get(start, key) ? json_text(json_get(start, key), false, &text, err) : -EBADMSG;

        if (r == 0)
                hash_text(hash, text, strlen(text));
        return r < 0 || !str_eq(hash, want) ? another(err, key) : 0;
}

static int documents_check(const struct json *doc, const struct expected *ex, struct dossier_facts *f,
                           struct err *err) {
        const char *start_text = json_get_str(doc, "start"), *end_text = json_get_str(doc, "end");
        CLEANUP(json_freep) struct json *start = NULL;
        char hash[HASH_TEXT];
        int r = 0;

        f->has_start = start_text != NULL;
        f->has_end = end_text != NULL;
        if (start_text && json_parse("start", start_text, strlen(start_text), &start, err) < 0)
                return wrong(err, "what was read back is not JSON");
        if (start && json_len(start) != 3)
                return wrong(err, "what was read back has other parts than evidence, plan and policy");
        if (start)
                r = part_check(start, "evidence", ex->evidence, err);
        if (start && r == 0)
                r = part_check(start, "plan", ex->plan, err);
        if (start && r == 0)
                r = part_check(start, "policy", ex->policy, err);
        if (r == 0 && end_text) {
                hash_text(hash, end_text, strlen(end_text));
                r = str_eq(hash, ex->receipt) ? 0 : another(err, "receipt");
        }
        return r;
}

static int head_get(const struct json *doc, const uint8_t pub[SIGN_PUBLIC], const struct dossier_facts *f,
                    struct audit_head *ret, struct err *err) {
        const char *note = json_get_str(doc, "head");
        struct err why = { 0 };
        size_t text;

        if (!note || sign_note_open(note, strlen(note), pub, &text, &why) < 0 ||
            audit_head_parse(note, text, ret, &why) < 0)
                return wrong(err, note ? why.msg : "it has no head");
        return str_eq(ret->tenant, f->tenant) ? 0 : wrong(err, "its head is of another tenant");
}

static int name_get(const struct json *doc, const char *key, char *dst, size_t cap) {
        const char *s = json_get_str(doc, key);

        return s ? str_copy(dst, cap, s) : -EBADMSG;
}

int dossier_check(const char *payload, size_t n, const uint8_t pub[SIGN_PUBLIC], struct dossier_facts *ret,
                  struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        const struct json *events;
        struct expected ex = { 0 };
        struct audit_head head = { 0 };
        uint64_t last = 0;
        int r;

        memset(ret, 0, sizeof(*ret));
        if (json_parse("dossier", payload, n, &doc, err) < 0)
                return wrong(err, "it is not JSON");
        if (name_get(doc, "tenant", ret->tenant, sizeof(ret->tenant)) < 0 ||
            name_get(doc, "sandbox", ret->sandbox, sizeof(ret->sandbox)) < 0 ||
            name_get(doc, "made", ret->made, sizeof(ret->made)) < 0 || json_get_int(doc, "version", 0) != 1)
                return wrong(err, "tenant, sandbox, time or version is missing");
        r = head_get(doc, pub, ret, &head, err);
        events = json_get(doc, "events");
        for (size_t i = 0; r == 0 && i < json_len(events); i++) {
                r = event_check(json_at(events, i), last, &head, ret, &ex, err);
                last = (uint64_t) json_get_int(json_at(events, i), "index", 0) + 1;
        }
        if (r == 0 && json_len(events) == 0)
                r = wrong(err, "it has no records");
        if (r == 0)
                r = documents_check(doc, &ex, ret, err);
        ret->events = json_len(events);
        ret->log_size = head.tree.size;
        return r;
}
