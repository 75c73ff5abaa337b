/* told.c - messages to clients: events of commands, and what there is to know of a file. See message.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own.h"
#include "base/str.h"
#include "envd/envd.h"
#include "envd/message.h"
#include "envd/text.h"
#include "fileproto/fileproto.h"
#include "json/json.h"
#include "sign/sign.h"

enum { NUMBER = 24 };

/* Numbers of 64 bits are texts in protobuf's JSON. */
static void set_u64(struct json *obj, const char *key, uint64_t v) {
        char text[NUMBER];

        (void) snprintf(text, sizeof(text), "%" PRIu64, v);
        json_set_str(obj, key, text);
}

static struct json *event_with(const char *kind, struct json *value) {
        struct json *message = json_new_object(), *event = json_new_object();

        json_set(event, kind, value);
        json_set(message, "event", event);
        return message;
}

size_t message_output(char dst[MESSAGE_OUTPUT], enum message_stream_name stream, const void *p, size_t n) {
        static const char *const names[] = { "stdout", "stderr", "pty" };
        char *at = dst + ENVD_ENVELOPE;
        size_t room = MESSAGE_OUTPUT - ENVD_ENVELOPE;
        int k = snprintf(at, room, "{\"event\":{\"data\":{\"%s\":\"", names[stream]);

        if (n > AP_CHUNK)
                n = AP_CHUNK; /* nobody gives more; the buffer is as long as that */
        sign_base64(at + k, room - (size_t) k, p, n);
        at += k;
        at += strlen(at);
        k = snprintf(at, MESSAGE_OUTPUT - (size_t) (at - dst), "\"}}}");
        return (size_t) (at + k - dst) - ENVD_ENVELOPE;
}

struct json *message_started(uint32_t pid, uint64_t at) {
        struct json *start = json_new_object();

        json_set_int(start, "pid", pid);
        set_u64(start, "at", at);
        return event_with("start", start);
}

struct json *message_gap(uint64_t bytes) {
        struct json *gap = json_new_object();

        set_u64(gap, "bytes", bytes);
        return event_with("gap", gap);
}

struct json *message_ended(const struct ap_exit *exit, uint32_t exec_errno) {
        struct json *end = json_new_object();
        char status[ENVD_EXIT], why[ENVD_EXIT];

        text_exit(status, exit->signalled, exit->code);
        json_set_int(end, "exitCode", exit->signalled ? -1 : (int64_t) exit->code);
        json_set_bool(end, "exited", !exit->signalled);
        json_set_str(end, "status", status);
        if (exec_errno > 0) {
                (void) snprintf(why, sizeof(why), "exec: %s", strerrordesc_np((int) exec_errno));
                json_set_str(end, "error", why);
        } else if (exit->signalled || exit->code != 0) {
                json_set_str(end, "error", status);
        }
        return event_with("end", end);
}

struct json *message_config(const void *what, size_t n) {
        const char *cwd, *argv[AP_WHAT + 1];
        struct json *config = json_new_object(), *args = json_new_array();
        bool cut;

        if (ap_get_what(what, n, &cwd, argv, ARRAY_SIZE(argv), &cut) == 0) {
                for (size_t i = 1; argv[0] && argv[i]; i++)
                        json_add_str(args, argv[i]);
                json_set_str(config, "cmd", argv[0] ? argv[0] : "");
                if (*cwd)
                        json_set_str(config, "cwd", cwd);
        }
        json_set(config, "args", args);
        json_set(config, "envs", json_new_object());
        return config;
}

/* A name if the sandbox has a user of that number, else the number. */
static void set_owner(struct json *obj, const char *key, uint32_t id, const struct envd_user *users, size_t n,
                      bool group) {
        char text[NUMBER];
        const char *name = text;

        (void) snprintf(text, sizeof(text), "%" PRIu32, id);
        for (size_t i = 0; i < n && name == text; i++)
                if ((group ? users[i].gid : users[i].uid) == id)
                        name = users[i].name;
        json_set_str(obj, key, name);
}

static void set_metadata(struct json *obj, const struct fp_entry *e) {
        static const char prefix[] = "user.e2b.";
        struct json *metadata = json_new_object();

        for (size_t i = 0; i < e->n_xattrs; i++) {
                char value[FP_XATTR_BYTES + 1];

                if (!str_has_prefix(e->xattrs[i].name, prefix) || e->xattrs[i].n >= sizeof(value))
                        continue;
                memcpy(value, e->xattrs[i].value, e->xattrs[i].n);
                value[e->xattrs[i].n] = '\0';
                json_set_str(metadata, e->xattrs[i].name + sizeof(prefix) - 1, value);
        }
        if (json_len(metadata) > 0)
                json_set(obj, "metadata", metadata);
        else
                (void) json_free(metadata);
}

static const char *kind_of(uint32_t mode) {
        switch (mode & S_IFMT) {
        case S_IFREG:
                return "FILE_TYPE_FILE";
        case S_IFDIR:
                return "FILE_TYPE_DIRECTORY";
        case S_IFLNK:
                return "FILE_TYPE_SYMLINK";
        default:
                return "FILE_TYPE_UNSPECIFIED";
        }
}

struct json *message_entry(const struct fp_entry *e, const struct envd_user *users, size_t n_users) {
        struct json *j = json_new_object();
        bool follows = S_ISLNK(e->mode) && e->target_mode != 0;
        char mode[ENVD_MODE], when[ENVD_TIME];

        text_mode(mode, e->mode);
        text_time(when, e->mtime_s, e->mtime_ns);
        json_set_str(j, "name", text_name(e->path));
        json_set_str(j, "type", kind_of(follows ? e->target_mode : e->mode));
        json_set_str(j, "path", e->path);
        set_u64(j, "size", e->size);
        json_set_int(j, "mode", (follows ? e->target_mode : e->mode) & 0777);
        json_set_str(j, "permissions", mode);
        set_owner(j, "owner", e->uid, users, n_users, false);
        set_owner(j, "group", e->gid, users, n_users, true);
        json_set_str(j, "modifiedTime", when);
        if (*e->target)
                json_set_str(j, "symlinkTarget", e->target);
        set_metadata(j, e);
        return j;
}

struct json *message_event(unsigned what, const char *name, struct json *entry) {
        static const char *const types[] = {
                [FP_CREATE] = "EVENT_TYPE_CREATE", [FP_MODIFY] = "EVENT_TYPE_WRITE", [FP_DELETE] = "EVENT_TYPE_REMOVE",
                [FP_RENAME] = "EVENT_TYPE_RENAME", [FP_CHMOD] = "EVENT_TYPE_CHMOD",
        };
        struct json *j;

        if (what >= ARRAY_SIZE(types) || !types[what]) {
                (void) json_free(entry);
                return NULL;
        }
        j = json_new_object();
        json_set_str(j, "name", name);
        json_set_str(j, "type", types[what]);
        if (entry)
                json_set(j, "entry", entry);
        return j;
}
