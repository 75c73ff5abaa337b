/*
 * note.c - signed notes (C2SP): a text, an empty line, and a line "\u2014 NAME BASE64(key id, signature)". What is
 * signed is the text with its last newline. Also base64 and the keyed hash, for those who must not know libsodium.
 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "sign/key.h"

enum { NOTE_ID = 4, ED25519 = 1, SIG_TEXT = 96 };

#define DASH "\xe2\x80\x94 "

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

static const int variant = sodium_base64_VARIANT_ORIGINAL;

void sign_base64(char *dst, size_t cap, const void *p, size_t n) {
        (void) sodium_bin2base64(dst, cap, p, n, variant);
}

ssize_t sign_unbase64(void *dst, size_t cap, const char *text) {
        size_t n = 0, len = strlen(text);
        const char *end = NULL;

        if (sodium_base642bin(dst, cap, text, len, NULL, &n, &end, variant) != 0 || *end)
                return -EINVAL;
        /* libsodium 1.0.18 reads 0xaf as '/' where char is signed: only what base64 consists of may pass. */
        return strspn(text, LETTERS "0123456789+/=") == len ? (ssize_t) n : -EINVAL;
}

void sign_hmac(const void *key, size_t n_key, const void *p, size_t n, uint8_t dst[HASH_BYTES]) {
        crypto_auth_hmacsha256_state s;

        (void) crypto_auth_hmacsha256_init(&s, key, n_key);
        (void) crypto_auth_hmacsha256_update(&s, p, n);
        (void) crypto_auth_hmacsha256_final(&s, dst);
}

static void note_id(const uint8_t pub[SIGN_PUBLIC], uint8_t dst[NOTE_ID]) {
        static const uint8_t kind = ED25519;
        const struct hash_part parts[] = { { SIGN_NOTE_NAME "\n", sizeof(SIGN_NOTE_NAME) },
                                           { &kind, 1 },
                                           { pub, SIGN_PUBLIC } };
        uint8_t digest[HASH_BYTES];

        hash_parts(digest, parts, 3);
        memcpy(dst, digest, NOTE_ID);
}

void sign_note(const struct sign_key *k, struct buf *text) {
        uint8_t raw[NOTE_ID + SIGN_BYTES];
        char line[SIG_TEXT];

        note_id(k->pub, raw);
        sign_bytes(k, buf_str(text), text->len, raw + NOTE_ID);
        sign_base64(line, sizeof(line), raw, sizeof(raw));
        buf_addf(text, "\n" DASH SIGN_NOTE_NAME " %s\n", line);
}

/* The line of the signature, cut to its base64, and the length of the text before it. */
static int note_split(const char *note, size_t n, char line[SIG_TEXT], size_t *ret_text) {
        static const char mark[] = "\n\n" DASH SIGN_NOTE_NAME " ";
        const char *at = memmem(note, n, mark, sizeof(mark) - 1), *sig = at ? at + sizeof(mark) - 1 : NULL;
        size_t len = sig ? (size_t) (note + n - sig) : 0;

        if (len < 2 || len > SIG_TEXT || sig[len - 1] != '\n' || memchr(sig, '\n', len - 1) || memchr(sig, '\0', len))
                return -EINVAL;
        memcpy(line, sig, len - 1);
        line[len - 1] = '\0';
        *ret_text = (size_t) (at - note) + 1;
        return 0;
}

int sign_note_open(const char *note, size_t n, const uint8_t pub[SIGN_PUBLIC], size_t *ret_text, struct err *err) {
        uint8_t raw[NOTE_ID + SIGN_BYTES + 8], id[NOTE_ID];
        char line[SIG_TEXT];
        size_t text;

        if (note_split(note, n, line, &text) < 0 || sign_unbase64(raw, sizeof(raw), line) != NOTE_ID + SIGN_BYTES)
                return err_set(err, -EBADMSG, ERR_INVALID, "not a signed note");
        note_id(pub, id);
        if (memcmp(id, raw, NOTE_ID) != 0)
                return err_set(err, -ENOKEY, ERR_INVALID, "the note is signed by another key");
        if (!sign_check(pub, note, text, raw + NOTE_ID))
                return err_set(err, -EBADMSG, ERR_INVALID, "the signature of the note does not match");
        *ret_text = text;
        return 0;
}
