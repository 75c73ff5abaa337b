/*
 * auth.c - see auth.h.
 *
 * A key is 160 random bits, so a plain SHA-256 is enough at rest: there is nothing to guess, and nothing to slow down.
 * The look-up is by that hash; how long it takes says nothing about keys that differ from the one sent.
 */
#include "daemon/auth.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "http/http.h"
#include "sign/sign.h"

#define KEY_PREFIX "e2b_"

enum { KEY_BYTES = 20, MASK_SHOWN = AUTH_MASK / 2, KEY_SENT = 256 };

static const char *const names[VERBS] = { "open", "read",  "create", "connect", "update",
                                          "kill", "audit", "keys",   "tenants" };

const char *verb_name(enum verb v) {
        return (unsigned) v < VERBS ? names[v] : "unknown";
}

bool auth_list_has(const char *list, const char *name) {
        size_t n = strlen(name);

        while (*list) {
                size_t len = strcspn(list, ",");

                if (len == n && memcmp(list, name, n) == 0)
                        return true;
                list += len + (list[len] == ',');
        }
        return false;
}

int verb_check_list(const char *list, struct err *err) {
        while (*list) {
                size_t len = strcspn(list, ",");
                unsigned v = VERB_READ;

                while (v < VERBS && (strlen(names[v]) != len || memcmp(names[v], list, len) != 0))
                        v++;
                if (v == VERBS)
                        return err_set(
                                err, -EINVAL, ERR_INVALID,
                                "verbs: '%.*s' is not one of: read create connect update kill audit keys tenants",
                                (int) (len > 20 ? 20 : len), list);
                list += len + (list[len] == ',');
        }
        return 0;
}

bool verb_of_role(enum store_role role, enum verb v) {
        static const unsigned table[STORE_ROLES] = {
                [STORE_ADMIN] = BIT(VERBS) - 1,
                [STORE_DEVELOPER] = BIT(VERB_READ) | BIT(VERB_CREATE) | BIT(VERB_CONNECT) | BIT(VERB_UPDATE) |
                                    BIT(VERB_KILL) | BIT(VERB_AUDIT),
                [STORE_AUDITOR] = BIT(VERB_READ) | BIT(VERB_AUDIT),
        };

        return (unsigned) role < STORE_ROLES && (table[role] & BIT(v));
}

bool auth_may(const struct auth *a, enum verb v) {
        if (v == VERB_TENANTS && !a->is_operator)
                return false;
        return verb_of_role(a->key.role, v) && (!a->key.verbs[0] || auth_list_has(a->key.verbs, names[v]));
}

bool auth_may_template(const struct auth *a, const char *template_id) {
        return !a->key.templates[0] || auth_list_has(a->key.templates, template_id);
}

void auth_key_hash(const char *text, uint8_t hash[STORE_HASH]) {
        const struct hash_part all = { text, strlen(text) };

        _Static_assert((int) STORE_HASH == (int) HASH_BYTES, "the store keeps SHA-256");
        hash_parts(hash, &all, 1);
}

/* The key as sent, or NULL. Two of them are none: which one is meant could differ between readers. */
static const char *sent_key(const struct http_head *head) {
        size_t at = 0, more;
        const char *key = http_header(head, "x-api-key", &at), *bearer;

        more = at;
        if (key)
                return http_header(head, "x-api-key", &more) ? NULL : key;
        at = 0;
        bearer = http_header(head, "authorization", &at);
        if (!bearer || strncasecmp(bearer, "bearer ", 7) != 0 || http_header(head, "authorization", &at))
                return NULL;
        return bearer + 7 + strspn(bearer + 7, " ");
}

static int refuse(struct err *err, const char *why) {
        return err_set(err, -EACCES, ERR_DENIED, "%s", why);
}

int auth_request(struct daemon *d, const struct http_head *head, struct auth *ret, struct err *err) {
        const char *text = sent_key(head);
        uint64_t now = clock_real_ms();
        uint8_t hash[STORE_HASH];
        int r;

        if (!text || !*text)
                return refuse(err, "an API key is needed: send it as X-API-Key");
        if (strnlen(text, KEY_SENT) == KEY_SENT)
                return refuse(err, "invalid API key");
        auth_key_hash(text, hash);
        r = store_key_find(d->store, hash, &ret->key, err);
        if (r == -ENOENT)
                return refuse(err, "invalid API key");
        if (r < 0)
                return r;
        if (ret->key.revoked)
                return refuse(err, "this API key was revoked");
        if (ret->key.expires_ms && ret->key.expires_ms <= now)
                return refuse(err, "this API key has expired");
        r = store_tenant_get(d->store, ret->key.tenant, &ret->tenant, err);
        if (r < 0)
                return r;
        if (ret->tenant.disabled)
                return err_set(err, -EPERM, ERR_DENIED, "tenant %s is disabled", ret->tenant.name);
        ret->is_operator = ret->key.role == STORE_ADMIN && str_eq(ret->tenant.name, DAEMON_OPERATORS);
        ret->sees_all = ret->key.role != STORE_DEVELOPER && str_eq(ret->tenant.name, DAEMON_OPERATORS);
        if (now - ret->key.used_ms >= KEY_USED_MS)
                (void) store_key_used(d->store, ret->key.id, now, err); /* nothing depends on it */
        return 0;
}

int auth_key_new(char text[AUTH_KEY], uint8_t hash[STORE_HASH], char mask[STORE_MASK], struct err *err) {
        uint8_t raw[KEY_BYTES];

        if (getrandom(raw, sizeof(raw), 0) != (ssize_t) sizeof(raw))
                return err_set(err, -EIO, ERR_INTERNAL, "no random numbers");
        (void) str_copy(text, AUTH_KEY, KEY_PREFIX);
        str_hex(text + strlen(KEY_PREFIX), raw, sizeof(raw));
        auth_key_hash(text, hash);
        (void) snprintf(mask, STORE_MASK, "%.*s%s", MASK_SHOWN, text + strlen(KEY_PREFIX),
                        text + AUTH_KEY - 1 - MASK_SHOWN);
        return 0;
}

void auth_token(const struct daemon *d, const char *kind, const char *id, char dst[AUTH_TOKEN]) {
        uint8_t mac[HASH_BYTES];
        char text[64];

        (void) snprintf(text, sizeof(text), "%s:%s", kind, id);
        sign_hmac(d->key, sizeof(d->key), text, strlen(text), mac);
        str_hex(dst, mac, sizeof(mac));
}
