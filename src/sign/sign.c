/* sign.c - DSSE envelopes. */
#include "sign/sign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "sign/key.h"

static const int variant = sodium_base64_VARIANT_ORIGINAL;

/* DSSE's pre-authentication encoding: "DSSEv1" SP LEN(type) SP type SP LEN(body) SP body. */
static void encode(struct buf *b, const char *type, const char *payload, size_t n) {
        buf_addf(b, "DSSEv1 %zu %s %zu ", strlen(type), type, n);
        buf_add(b, payload, n);
}

int sign_envelope(const struct sign_key *k, const char *type, const char *payload, char **ret, struct err *err) {
        CLEANUP(json_freep) struct json *doc = json_new_object();
        size_t n = strlen(payload), cap = sodium_base64_encoded_len(n, variant);
        AUTO_FREE char *body = malloc(cap);
        struct buf pae = BUF_INIT(SIGN_PAYLOAD_MAX + 256);
        struct json *list = json_new_array(), *one = json_new_object();
        uint8_t sig[crypto_sign_BYTES];
        char sig_text[128], id[HASH_TEXT];

        encode(&pae, type, payload, n);
        if (!body || pae.bad) {
                buf_done(&pae);
                json_free(list);
                json_free(one);
                return err_set(err, -E2BIG, ERR_LIMIT, "signing: the statement is too large");
        }
        (void) crypto_sign_detached(sig, NULL, (const uint8_t *) pae.p, pae.len, k->secret);
        buf_done(&pae);
        (void) sodium_bin2base64(body, cap, (const uint8_t *) payload, n, variant);
        (void) sodium_bin2base64(sig_text, sizeof(sig_text), sig, sizeof(sig), variant);
        sign_key_id(k, id);
        json_set_str(one, "keyid", id);
        json_set_str(one, "sig", sig_text);
        json_add(list, one);
        json_set_str(doc, "payloadType", type);
        json_set_str(doc, "payload", body);
        json_set(doc, "signatures", list);
        return json_text(doc, true, ret, err);
}

static int wrong(struct err *err, const char *what) {
        return err_set(err, -EBADMSG, ERR_INVALID, "not a valid signed statement: %s", what);
}

static int payload_decode(const char *text, char **ret, size_t *ret_n, struct err *err) {
        size_t cap = strlen(text) / 4 * 3 + 3;
        AUTO_FREE char *payload = malloc(cap + 1);
        const char *end = NULL;

        if (!payload)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "out of memory");
        if (sodium_base642bin((uint8_t *) payload, cap, text, strlen(text), NULL, ret_n, &end, variant) != 0 || *end ||
            memchr(payload, '\0', *ret_n))
                return wrong(err, "the payload is not base64 of a text");
        payload[*ret_n] = '\0';
        *ret = TAKE_PTR(payload);
        return 0;
}

int sign_open(const char *text, size_t n, const char *type, const uint8_t pub[SIGN_PUBLIC], char **ret_payload,
              struct err *err) {
        CLEANUP(json_freep) struct json *doc = NULL;
        AUTO_FREE char *payload = NULL;
        struct buf pae = BUF_INIT(SIGN_PAYLOAD_MAX + 256);
        const char *body, *given, *sig_text;
        uint8_t sig[crypto_sign_BYTES];
        size_t len = 0, n_payload = 0;
        int r;

        if (sodium_init() < 0)
                return err_set(err, -EIO, ERR_INTERNAL, "verifying: libsodium cannot be used");
        if (json_parse("statement", text, n, &doc, err) < 0)
                return wrong(err, "it is not JSON");
        body = json_get_str(doc, "payload");
        given = json_get_str(doc, "payloadType");
        sig_text = json_get_str(json_at(json_get(doc, "signatures"), 0), "sig");
        if (!body || !given || !sig_text || json_len(doc) != 3 || json_len(json_get(doc, "signatures")) != 1)
                return wrong(err, "payload, payloadType and one signature are expected");
        if (!str_eq(given, type))
                return wrong(err, "it is a statement of another kind");
        if (sodium_base642bin(sig, sizeof(sig), sig_text, strlen(sig_text), NULL, &len, NULL, variant) != 0 ||
            len != sizeof(sig))
                return wrong(err, "the signature is not base64 of 64 bytes");
        r = payload_decode(body, &payload, &n_payload, err);
        if (r < 0)
                return r;
        encode(&pae, type, payload, n_payload);
        r = pae.bad || crypto_sign_verify_detached(sig, (const uint8_t *) pae.p, pae.len, pub) != 0 ? -EBADMSG : 0;
        buf_done(&pae);
        if (r < 0)
                return wrong(err, "the signature does not match: it was changed, or signed by another key");
        *ret_payload = TAKE_PTR(payload);
        return 0;
}
