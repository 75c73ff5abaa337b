/* keys.c - see keys.h. */
#include "daemon/keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/auth.h"
#include "daemon/daemon.h"
#include "daemon/events.h"
#include "daemon/request.h"
#include "json/json.h"

static void set_time(struct json *o, const char *key, uint64_t ms) {
        char text[CLOCK_TEXT];

        clock_rfc3339_at(text, ms);
        json_set_str(o, key, ms ? text : NULL);
}

/* The mask is the first and the last digits. */
static void set_mask(struct json *o, const char *mask) {
        struct json *m = json_new_object();
        char part[AUTH_MASK / 2 + 1];

        json_set_str(m, "prefix", "e2b_");
        json_set_int(m, "valueLength", AUTH_KEY - 1 - 4);
        (void) snprintf(part, sizeof(part), "%.*s", AUTH_MASK / 2, mask);
        json_set_str(m, "maskedValuePrefix", part);
        json_set_str(m, "maskedValueSuffix", strlen(mask) == AUTH_MASK ? mask + AUTH_MASK / 2 : "");
        json_set(o, "mask", m);
}

static void set_list(struct json *o, const char *key, const char *list) {
        struct json *a = json_new_array();
        char name[STORE_NAME];

        while (*list) {
                size_t n = strcspn(list, ",");

                (void) snprintf(name, sizeof(name), "%.*s", (int) (n < sizeof(name) ? n : sizeof(name) - 1), list);
                json_add_str(a, name);
                list += n + (list[n] == ',');
        }
        json_set(o, key, a);
}

static struct json *view(const struct store_key *k, bool e2b) {
        struct json *o = json_new_object();

        json_set_str(o, "id", k->id);
        json_set_str(o, "name", k->name);
        set_mask(o, k->mask);
        set_time(o, "createdAt", k->created_ms);
        if (e2b) {
                json_set_str(o, "createdBy", NULL);
                set_time(o, "lastUsed", k->used_ms);
                return o;
        }
        json_set_str(o, "role", store_role_name(k->role));
        set_list(o, "verbs", k->verbs);
        set_list(o, "templates", k->templates);
        set_time(o, "expiresAt", k->expires_ms);
        set_time(o, "usedAt", k->used_ms);
        json_set_bool(o, "revoked", k->revoked);
        return o;
}

/* Nobody makes a key that can do more than the own one. */
static void inherit(const struct request *q, struct store_key *k) {
        const struct store_key *own = &q->auth.key;

        if (!k->verbs[0])
                (void) str_copy(k->verbs, sizeof(k->verbs), own->verbs);
        if (!k->templates[0])
                (void) str_copy(k->templates, sizeof(k->templates), own->templates);
        if (!k->expires_ms)
                k->expires_ms = own->expires_ms;
}

/* Is every element of list in limits? No limits: yes. */
static bool is_within(const char *list, const char *limits) {
        char name[STORE_NAME];

        while (limits[0] && *list) {
                size_t n = strcspn(list, ",");

                (void) snprintf(name, sizeof(name), "%.*s", (int) (n < sizeof(name) ? n : sizeof(name) - 1), list);
                if (!auth_list_has(limits, name))
                        return false;
                list += n + (list[n] == ',');
        }
        return true;
}

static int check_rights(const struct request *q, const struct store_key *k, struct err *err) {
        const struct store_key *own = &q->auth.key;

        if (!k->name[0])
                return err_set(err, -EINVAL, ERR_INVALID, "name: must not be empty");
        if (!is_within(k->verbs, own->verbs))
                return err_set(err, -EPERM, ERR_DENIED, "verbs: your own key has only: %s", own->verbs);
        if (!is_within(k->templates, own->templates))
                return err_set(err, -EPERM, ERR_DENIED, "templates: your own key has only: %s", own->templates);
        if (own->expires_ms && k->expires_ms > own->expires_ms)
                return err_set(err, -EPERM, ERR_DENIED, "expires: your own key ends earlier");
        return 0;
}

int keys_add(struct request *q, const char *tenant, struct store_key *k, bool e2b, struct json **ret, struct err *err) {
        uint8_t hash[STORE_HASH];
        char text[AUTH_KEY];
        struct json *data;
        int r;

        inherit(q, k);
        r = check_rights(q, k, err);
        if (r == 0)
                r = auth_key_new(text, hash, k->mask, err);
        if (r == 0 && id_new(k->id) < 0)
                r = err_set(err, -EIO, ERR_INTERNAL, "no random numbers");
        if (r < 0)
                return r;
        (void) str_copy(k->tenant, sizeof(k->tenant), tenant);
        k->created_ms = clock_real_ms();
        data = json_new_object();
        json_set_str(data, "key", k->id);
        json_set_str(data, "name", k->name);
        json_set_str(data, "role", store_role_name(k->role));
        json_set_str(data, "by", q->auth.key.id);
        r = event_emit(q->d, tenant, "", "key.created", data, err);
        if (r == 0)
                r = store_key_add(q->d->store, k, hash, err);
        if (r == 0) {
                *ret = view(k, e2b);
                json_set_str(*ret, "key", text);
        }
        explicit_bzero(text, sizeof(text));
        return r;
}

int keys_revoke(struct request *q, const char *tenant, const char *id, struct err *err) {
        struct json *data;
        int r = store_key_revoke(q->d->store, tenant, id, err);

        if (r < 0)
                return r;
        data = json_new_object();
        json_set_str(data, "key", id);
        json_set_str(data, "by", q->auth.key.id);
        return event_emit(q->d, tenant, "", "key.revoked", data, err);
}

struct listing {
        struct json *list;
        bool e2b;
};

static int on_key(void *arg, const struct store_key *k) {
        struct listing *l = arg;

        if (!l->e2b || !k->revoked)
                json_add(l->list, view(k, l->e2b));
        return 0;
}

int keys_list(struct request *q, const char *tenant, bool e2b, struct json **ret, struct err *err) {
        struct listing l = { .list = json_new_array(), .e2b = e2b };
        int r = store_key_each(q->d->store, tenant, on_key, &l, err);

        if (r < 0)
                (void) json_free(l.list);
        else
                *ret = l.list;
        return r;
}
