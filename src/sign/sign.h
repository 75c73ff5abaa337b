/*
 * sign.h - signed statements: DSSE envelopes with Ed25519, checked offline with nothing but a public key.
 *
 * An envelope is JSON: payloadType, payload (base64), signatures [{ keyid, sig }]. What is signed is DSSE's
 * pre-authentication encoding, so neither type nor length can be played with. Beside them signed notes, for the heads
 * of the audit log. The only user of libsodium.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hash.h"

struct buf;
struct err;

/* Name of our keys in signed notes. */
#define SIGN_NOTE_NAME "gabion"

enum { SIGN_PUBLIC = 32, SIGN_BYTES = 64, SIGN_PAYLOAD_MAX = 8 << 20, SIGN_FILE_MAX = 12 << 20 };

struct sign_key; /* secret; wiped when freed */

/* The key in dir ("signing.key", 0600, made on first use, with "signing.pub" beside it). The caller owns *ret. */
int sign_key_open(const char *dir, struct sign_key **ret, struct err *err);
struct sign_key *sign_key_free(struct sign_key *k);
void sign_key_freep(struct sign_key **k);
/* Id of a public key: sha256 of its 32 bytes. */
void sign_key_id(const struct sign_key *k, char dst[HASH_TEXT]);
void sign_key_public(const struct sign_key *k, uint8_t dst[SIGN_PUBLIC]);
/* A change of keys: the coming pair is made (or found) as "next.key"; promoting it puts it in the place of the old one,
 * whose public half stays as "retired-XXXXXXXX.pub". */
int sign_key_next(const char *dir, struct sign_key **ret, struct err *err);
int sign_key_promote(const char *dir, struct err *err);

void sign_bytes(const struct sign_key *k, const void *p, size_t n, uint8_t sig[SIGN_BYTES]);
/* The same with a key given as its seed of 32 bytes, for keys that are not ours. */
void sign_seed(const uint8_t seed[SIGN_PUBLIC], const void *p, size_t n, uint8_t sig[SIGN_BYTES]);
bool sign_check(const uint8_t pub[SIGN_PUBLIC], const void *p, size_t n, const uint8_t sig[SIGN_BYTES]);

/* Wraps and signs; the caller frees *ret (text of the envelope). */
int sign_envelope(const struct sign_key *k, const char *type, const char *payload, char **ret, struct err *err);

/* A public key file: 64 hex digits. */
int sign_public_read(const char *path, uint8_t dst[SIGN_PUBLIC], struct err *err);

/*
 * Checks an envelope of n bytes against a public key and the expected type. The caller frees *ret_payload. Any
 * difference, however small, is -EBADMSG with a message that says what is wrong. Untrusted input, fuzzed.
 */
int sign_open(const char *text, size_t n, const char *type, const uint8_t pub[SIGN_PUBLIC], char **ret_payload,
              struct err *err);

/* Signs a text that ends with a newline, and appends the signature. */
void sign_note(const struct sign_key *k, struct buf *text);
/* Checks a note with one signature; *ret_text is the length of its text. -ENOKEY: signed by another key; -EBADMSG.
 * Untrusted input, fuzzed. */
int sign_note_open(const char *note, size_t n, const uint8_t pub[SIGN_PUBLIC], size_t *ret_text, struct err *err);

/* Base64; the length of what was decoded, or -EINVAL. */
void sign_base64(char *dst, size_t cap, const void *p, size_t n);
ssize_t sign_unbase64(void *dst, size_t cap, const char *text);
/* HMAC with SHA-256. */
void sign_hmac(const void *key, size_t n_key, const void *p, size_t n, uint8_t dst[HASH_BYTES]);
