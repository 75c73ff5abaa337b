/*
 * sign.h - signed statements: DSSE envelopes with Ed25519, checked offline with nothing but a public key.
 *
 * An envelope is JSON: payloadType, payload (base64), signatures [{ keyid, sig }]. What is signed is DSSE's
 * pre-authentication encoding, so neither type nor length can be played with. The only user of libsodium.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct err;
struct json;

enum { SIGN_PUBLIC = 32, SIGN_PAYLOAD_MAX = 8 << 20, SIGN_FILE_MAX = 12 << 20 };

struct sign_key; /* secret; wiped when freed */

/* The key in dir ("signing.key", 0600, made on first use, with "signing.pub" beside it). The caller owns *ret. */
int sign_key_open(const char *dir, struct sign_key **ret, struct err *err);
struct sign_key *sign_key_free(struct sign_key *k);
void sign_key_freep(struct sign_key **k);
/* Id of a public key: sha256 of its 32 bytes. */
void sign_key_id(const struct sign_key *k, char dst[HASH_TEXT]);

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
