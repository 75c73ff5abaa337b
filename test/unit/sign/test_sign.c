/* A signed statement opens with its key and in no other state than it was signed in. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "sign/sign.h"

#define TYPE "application/vnd.gabion.test+json"

static char dir[64], pub_path[80];
static struct sign_key *key;
static uint8_t pub[SIGN_PUBLIC];

static int set_up(void **state) {
        struct err err = { 0 };

        (void) state;
        (void) snprintf(dir, sizeof(dir), "/tmp/gabion-sign.XXXXXX");
        if (!mkdtemp(dir) || sign_key_open(dir, &key, &err) < 0)
                return -1;
        (void) snprintf(pub_path, sizeof(pub_path), "%s/signing.pub", dir);
        return sign_public_read(pub_path, pub, &err);
}

static int tear_down(void **state) {
        char path[96];

        (void) state;
        key = sign_key_free(key);
        (void) snprintf(path, sizeof(path), "%s/signing.key", dir);
        (void) unlink(path);
        (void) unlink(pub_path);
        return rmdir(dir);
}

static int open_it(const char *text, size_t n, const uint8_t *with) {
        AUTO_FREE char *payload = NULL;
        struct err err = { 0 };

        return sign_open(text, n, TYPE, with, &payload, &err);
}

static void what_was_signed_comes_back(void **state) {
        AUTO_FREE char *text = NULL, *payload = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(sign_envelope(key, TYPE, "{\"a\":1}", &text, &err), 0);
        assert_int_equal(sign_open(text, strlen(text), TYPE, pub, &payload, &err), 0);
        assert_string_equal(payload, "{\"a\":1}");
}

static void every_changed_byte_is_noticed(void **state) {
        AUTO_FREE char *text = NULL;
        struct err err = { 0 };
        size_t n, noticed = 0, meaning = 0;

        (void) state;
        assert_int_equal(sign_envelope(key, TYPE, "{\"attempts\":[1,2,3],\"passed\":false}", &text, &err), 0);
        n = strlen(text);
        for (size_t i = 0; i < n; i++)
                for (unsigned bit = 0; bit < 8; bit++) {
                        AUTO_FREE char *payload = NULL;
                        char old = text[i];
                        int r;

                        text[i] = (char) (old ^ (1u << bit));
                        r = sign_open(text, n, TYPE, pub, &payload, &err);
                        noticed += r < 0;
                        /* White space, and the key id, which only names the key, may change; what is said may not. */
                        meaning += r == 0 && strcmp(payload, "{\"attempts\":[1,2,3],\"passed\":false}") != 0;
                        text[i] = old;
                }
        assert_int_equal(meaning, 0);
        assert_true(noticed > n * 8 / 2);
        assert_int_equal(open_it(text, n, pub), 0);
        for (size_t i = 0; i < n - 2; i++) /* the last two are a brace and nothing that counts */
                assert_true(open_it(text, i, pub) < 0);
}

static void another_key_or_kind_does_not_open_it(void **state) {
        AUTO_FREE char *text = NULL, *other_kind = NULL;
        uint8_t other[SIGN_PUBLIC];
        struct err err = { 0 };

        (void) state;
        memcpy(other, pub, sizeof(other));
        other[0] ^= 1;
        assert_int_equal(sign_envelope(key, TYPE, "{}", &text, &err), 0);
        assert_int_equal(open_it(text, strlen(text), other), -EBADMSG);
        assert_int_equal(sign_envelope(key, "application/other", "{}", &other_kind, &err), 0);
        assert_int_equal(open_it(other_kind, strlen(other_kind), pub), -EBADMSG);
}

static void note_opens_with_its_key_and_every_bit_of_it_counts(void **state) {
        struct buf note = BUF_INIT(1024);
        uint8_t other[SIGN_PUBLIC];
        struct err err = { 0 };
        size_t text;

        (void) state;
        buf_addf(&note, "gabion/acme\n41\nAAAA\n");
        sign_note(key, &note);
        assert_int_equal(sign_note_open(note.p, note.len, pub, &text, &err), 0);
        assert_int_equal(text, 20);
        for (size_t bit = 0; bit < 8 * note.len; bit++) {
                note.p[bit / 8] = (char) (note.p[bit / 8] ^ (1 << bit % 8));
                assert_true(sign_note_open(note.p, note.len, pub, &text, &err) < 0);
                note.p[bit / 8] = (char) (note.p[bit / 8] ^ (1 << bit % 8));
        }
        for (size_t n = 0; n < note.len; n++)
                assert_true(sign_note_open(note.p, n, pub, &text, &err) < 0);
        memcpy(other, pub, sizeof(other));
        other[3] ^= 4;
        assert_int_equal(sign_note_open(note.p, note.len, other, &text, &err), -ENOKEY);
        buf_done(&note);
}

static void base64_is_strict(void **state) {
        char bytes[16];

        (void) state;
        assert_int_equal(sign_unbase64(bytes, sizeof(bytes), "aGk/"), 3);
        assert_int_equal(sign_unbase64(bytes, sizeof(bytes), "aGk\xaf"), -EINVAL); /* libsodium takes it for '/' */
        assert_int_equal(sign_unbase64(bytes, sizeof(bytes), "aGk"), -EINVAL);
        assert_int_equal(sign_unbase64(bytes, sizeof(bytes), "aGk/ "), -EINVAL);
        assert_int_equal(sign_unbase64(bytes, 2, "aGk/"), -EINVAL);
}

static void keyed_hash_is_the_standard_one(void **state) { /* RFC 4231, case 2 */
        uint8_t mac[HASH_BYTES];
        char hex[HASH_HEX];

        (void) state;
        sign_hmac("Jefe", 4, "what do ya want for nothing?", 28, mac);
        str_hex(hex, mac, sizeof(mac));
        assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void keys_change_in_two_steps(void **state) {
        char place[80] = "/tmp/gabion-sign-next.XXXXXX", path[128], command[160];
        struct sign_key *k = NULL, *next = NULL;
        uint8_t first[SIGN_PUBLIC], second[SIGN_PUBLIC], found[SIGN_PUBLIC];
        struct err err = { 0 };

        (void) state;
        assert_non_null(mkdtemp(place));
        assert_int_equal(sign_key_open(place, &k, &err), 0);
        assert_int_equal(sign_key_next(place, &next, &err), 0);
        sign_key_public(k, first);
        sign_key_public(next, second);
        k = sign_key_free(k);
        next = sign_key_free(next);
        assert_int_equal(sign_key_next(place, &next, &err), 0); /* the same one until it is promoted */
        sign_key_public(next, found);
        assert_memory_equal(second, found, sizeof(found));
        next = sign_key_free(next);
        (void) snprintf(path, sizeof(path), "%s/next.key", place);
        (void) snprintf(command, sizeof(command), "mv %s/next.key %s/signing.key", place, place);
        assert_int_equal(system(command), 0); /* promoting died after its first step */
        assert_int_equal(sign_key_open(place, &k, &err), 0);
        sign_key_public(k, found);
        assert_memory_equal(second, found, sizeof(found));
        (void) snprintf(path, sizeof(path), "%s/signing.pub", place);
        assert_int_equal(sign_public_read(path, found, &err), 0);
        assert_memory_equal(second, found, sizeof(found));
        k = sign_key_free(k);
        assert_int_equal(sign_key_next(place, &next, &err), 0);
        assert_int_equal(sign_key_promote(place, &err), 0);
        next = sign_key_free(next);
        (void) snprintf(command, sizeof(command), "test $(ls %s | wc -l) = 4 && rm -r %s", place, place);
        assert_int_equal(system(command), 0); /* signing.key, signing.pub, two retired ones */
}

static void key_is_kept_and_private(void **state) {
        struct sign_key *again = NULL;
        char a[HASH_TEXT], b[HASH_TEXT], path[96];
        struct err err = { 0 };
        struct stat st;

        (void) state;
        assert_int_equal(sign_key_open(dir, &again, &err), 0);
        sign_key_id(key, a);
        sign_key_id(again, b);
        assert_string_equal(a, b);
        assert_null(sign_key_free(again));
        (void) snprintf(path, sizeof(path), "%s/signing.key", dir);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
}

static void folder_that_others_may_write_is_refused(void **state) {
        struct sign_key *k = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(chmod(dir, 0777), 0);
        assert_int_equal(sign_key_open(dir, &k, &err), -EPERM);
        assert_int_equal(chmod(dir, 0700), 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_was_signed_comes_back),
                cmocka_unit_test(every_changed_byte_is_noticed),
                cmocka_unit_test(another_key_or_kind_does_not_open_it),
                cmocka_unit_test(note_opens_with_its_key_and_every_bit_of_it_counts),
                cmocka_unit_test(base64_is_strict),
                cmocka_unit_test(keyed_hash_is_the_standard_one),
                cmocka_unit_test(keys_change_in_two_steps),
                cmocka_unit_test(key_is_kept_and_private),
                cmocka_unit_test(folder_that_others_may_write_is_refused),
        };
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
