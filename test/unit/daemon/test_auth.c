/* test_auth.c - keys as they are sent, roles, verbs and templates, on a real store. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/auth.h"
#include "daemon/daemon.h"
#include "http/http.h"
#include "store/store.h"

struct fixture {
        struct daemon d;
        char dir[32], path[48], key[AUTH_KEY];
        struct store_key row;
};

static void add_key(struct fixture *f, struct store_key *k, char text[AUTH_KEY]) {
        uint8_t hash[STORE_HASH];
        struct err err = { 0 };

        assert_int_equal(auth_key_new(text, hash, k->mask, &err), 0);
        assert_int_equal(id_new(k->id), 0);
        assert_int_equal(store_key_add(f->d.store, k, hash, &err), 0);
}

static int set_up(void **state) {
        struct fixture *f = calloc(1, sizeof(*f));
        struct store_tenant operators = { .id = "operatorsoperatorsop", .name = "default" };
        struct store_tenant other = { .id = "otherotherotherother", .name = "other" };
        struct err err = { 0 };

        (void) snprintf(f->dir, sizeof(f->dir), "/tmp/gabion-auth-XXXXXX");
        if (!mkdtemp(f->dir))
                return -1;
        (void) snprintf(f->path, sizeof(f->path), "%s/store", f->dir);
        if (store_open(f->path, &f->d.store, &err) < 0 || store_tenant_add(f->d.store, &operators, &err) < 0 ||
            store_tenant_add(f->d.store, &other, &err) < 0)
                return -1;
        f->row = (struct store_key){ .tenant = "otherotherotherother", .name = "k", .role = STORE_DEVELOPER };
        add_key(f, &f->row, f->key);
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;
        static const char *const ends[] = { "", "-wal", "-shm" };
        char path[64];

        store_close(f->d.store);
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                (void) snprintf(path, sizeof(path), "%s%s", f->path, ends[i]);
                (void) unlink(path);
        }
        (void) rmdir(f->dir);
        free(f);
        return 0;
}

/* What a request with one header gets. */
static int ask(struct fixture *f, const char *name, const char *value, struct auth *ret, struct err *err) {
        struct http_head head = { .n_headers = 1, .headers = { { name, value } } };

        *err = (struct err){ 0 };
        return auth_request(&f->d, &head, ret, err);
}

static void key_is_found_in_both_headers(void **state) {
        struct fixture *f = *state;
        char bearer[AUTH_KEY + 16];
        struct auth a;
        struct err err;

        assert_int_equal(ask(f, "X-API-KEY", f->key, &a, &err), 0);
        assert_string_equal(a.tenant.name, "other");
        assert_string_equal(a.key.id, f->row.id);
        (void) snprintf(bearer, sizeof(bearer), "Bearer %s", f->key);
        assert_int_equal(ask(f, "authorization", bearer, &a, &err), 0);
        (void) snprintf(bearer, sizeof(bearer), "bearer  %s", f->key);
        assert_int_equal(ask(f, "authorization", bearer, &a, &err), 0);
}

static void anything_else_is_refused(void **state) {
        struct fixture *f = *state;
        char almost[AUTH_KEY + 8], basic[AUTH_KEY + 16], giant[4096];
        struct http_head two = { .n_headers = 2, .headers = { { "x-api-key", f->key }, { "x-api-key", f->key } } };
        struct http_head none = { 0 };
        struct auth a;
        struct err err = { 0 };

        (void) str_copy(almost, sizeof(almost), f->key);
        almost[AUTH_KEY - 2] ^= 1;
        memset(giant, 'a', sizeof(giant) - 1);
        giant[sizeof(giant) - 1] = '\0';
        (void) snprintf(basic, sizeof(basic), "Basic %s", f->key);
        assert_int_equal(ask(f, "x-api-key", almost, &a, &err), -EACCES);
        assert_int_equal(ask(f, "x-api-key", "", &a, &err), -EACCES);
        assert_int_equal(ask(f, "x-api-key", giant, &a, &err), -EACCES);
        assert_int_equal(ask(f, "authorization", basic, &a, &err), -EACCES);
        assert_int_equal(ask(f, "authorization", f->key, &a, &err), -EACCES);
        assert_int_equal(auth_request(&f->d, &two, &a, &err), -EACCES);
        assert_int_equal(auth_request(&f->d, &none, &a, &err), -EACCES);
}

static void expired_revoked_and_disabled_keys_are_refused(void **state) {
        struct fixture *f = *state;
        struct store_key old = { .tenant = "otherotherotherother", .name = "old", .expires_ms = 1000 };
        struct store_key fresh = { .tenant = "otherotherotherother", .name = "fresh" };
        struct store_tenant t;
        char text[AUTH_KEY];
        struct auth a;
        struct err err;

        add_key(f, &old, text);
        assert_int_equal(ask(f, "x-api-key", text, &a, &err), -EACCES);
        assert_non_null(strstr(err.msg, "expired"));
        fresh.expires_ms = clock_real_ms() + 60000;
        add_key(f, &fresh, text);
        assert_int_equal(ask(f, "x-api-key", text, &a, &err), 0);
        assert_int_equal(store_key_revoke(f->d.store, fresh.tenant, fresh.id, &err), 0);
        assert_int_equal(ask(f, "x-api-key", text, &a, &err), -EACCES);
        assert_int_equal(store_tenant_get(f->d.store, "other", &t, &err), 0);
        t.disabled = true;
        assert_int_equal(store_tenant_update(f->d.store, &t, &err), 0);
        assert_int_equal(ask(f, "x-api-key", f->key, &a, &err), -EPERM);
}

static void last_use_is_noted(void **state) {
        struct fixture *f = *state;
        struct auth a;
        struct err err;

        assert_int_equal(ask(f, "x-api-key", f->key, &a, &err), 0);
        assert_int_equal(ask(f, "x-api-key", f->key, &a, &err), 0);
        assert_in_range(a.key.used_ms, clock_real_ms() - 10000, clock_real_ms());
}

static void roles_include_what_they_should(void **state) {
        (void) state;
        assert_true(verb_of_role(STORE_ADMIN, VERB_KEYS));
        assert_true(verb_of_role(STORE_DEVELOPER, VERB_CREATE));
        assert_false(verb_of_role(STORE_DEVELOPER, VERB_KEYS));
        assert_false(verb_of_role(STORE_DEVELOPER, VERB_TENANTS));
        assert_true(verb_of_role(STORE_AUDITOR, VERB_AUDIT));
        for (unsigned v = VERB_CREATE; v <= VERB_KILL; v++)
                assert_false(verb_of_role(STORE_AUDITOR, v));
}

static void verbs_and_templates_narrow(void **state) {
        struct auth a = { .key = { .role = STORE_ADMIN, .verbs = "read,kill", .templates = "base,other" } };

        (void) state;
        assert_true(auth_may(&a, VERB_READ));
        assert_true(auth_may(&a, VERB_KILL));
        assert_false(auth_may(&a, VERB_CREATE));
        assert_true(auth_may_template(&a, "base"));
        assert_false(auth_may_template(&a, "bas"));
        assert_false(auth_may_template(&a, "base,other"));
        a.key.role = STORE_AUDITOR; /* a list never adds */
        assert_false(auth_may(&a, VERB_KILL));
        a = (struct auth){ .key = { .role = STORE_ADMIN } };
        assert_true(auth_may_template(&a, "anything"));
        assert_false(auth_may(&a, VERB_TENANTS)); /* an administrator of another tenant */
        a.is_operator = true;
        assert_true(auth_may(&a, VERB_TENANTS));
}

static void operators_are_the_first_tenants_administrators(void **state) {
        struct fixture *f = *state;
        struct store_key admin = { .tenant = "operatorsoperatorsop", .name = "a", .role = STORE_ADMIN };
        struct store_key auditor = { .tenant = "operatorsoperatorsop", .name = "b", .role = STORE_AUDITOR };
        struct store_key foreign = { .tenant = "otherotherotherother", .name = "c", .role = STORE_ADMIN };
        char text[AUTH_KEY];
        struct auth a;
        struct err err;

        add_key(f, &admin, text);
        assert_int_equal(ask(f, "x-api-key", text, &a, &err), 0);
        assert_true(a.is_operator && a.sees_all);
        add_key(f, &auditor, text);
        assert_int_equal(ask(f, "x-api-key", text, &a, &err), 0);
        assert_true(!a.is_operator && a.sees_all);
        add_key(f, &foreign, text);
        assert_int_equal(ask(f, "x-api-key", text, &a, &err), 0);
        assert_false(a.is_operator || a.sees_all);
}

static void lists_of_verbs_are_checked(void **state) {
        struct err err = { 0 };

        (void) state;
        assert_int_equal(verb_check_list("", &err), 0);
        assert_int_equal(verb_check_list("read,kill,tenants", &err), 0);
        assert_int_equal(verb_check_list("read,fly", &err), -EINVAL);
        assert_non_null(strstr(err.msg, "'fly'"));
        assert_int_equal(verb_check_list("open", &err), -EINVAL);
}

static void keys_and_tokens_have_their_form(void **state) {
        struct daemon d = { .key = { 1, 2, 3 } }, e = { .key = { 1, 2, 4 } };
        char key[AUTH_KEY], mask[STORE_MASK], one[AUTH_TOKEN], two[AUTH_TOKEN];
        uint8_t hash[STORE_HASH];
        struct err err = { 0 };

        (void) state;
        assert_int_equal(auth_key_new(key, hash, mask, &err), 0);
        assert_int_equal(strlen(key), 44);
        assert_int_equal(strspn(key + 4, "0123456789abcdef"), 40);
        assert_memory_equal(key, "e2b_", 4);
        assert_memory_equal(mask, key + 4, 4);
        assert_string_equal(mask + 4, key + 40);
        auth_token(&d, "envd", "a", one);
        auth_token(&d, "traffic", "a", two);
        assert_string_not_equal(one, two);
        auth_token(&d, "envd", "b", two);
        assert_string_not_equal(one, two);
        auth_token(&e, "envd", "a", two);
        assert_string_not_equal(one, two);
        auth_token(&d, "envd", "a", two);
        assert_string_equal(one, two);
}

#define WITH(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                WITH(key_is_found_in_both_headers),
                WITH(anything_else_is_refused),
                WITH(expired_revoked_and_disabled_keys_are_refused),
                WITH(last_use_is_noted),
                WITH(operators_are_the_first_tenants_administrators),
                cmocka_unit_test(roles_include_what_they_should),
                cmocka_unit_test(verbs_and_templates_narrow),
                cmocka_unit_test(lists_of_verbs_are_checked),
                cmocka_unit_test(keys_and_tokens_have_their_form),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
