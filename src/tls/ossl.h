/* ossl.h - OpenSSL's objects under our rules of ownership and errors. Private to src/tls. */
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

struct bufferevent;
struct err;
struct tls_ca;
struct tls_client;
struct tls_mint;

void ossl_ctx_freep(SSL_CTX **p);
void ossl_ssl_freep(SSL **p);
void ossl_x509_freep(X509 **p);
void ossl_pkey_freep(EVP_PKEY **p);
void ossl_bio_freep(BIO **p);

/* Fills *err with "what: the first reason in OpenSSL's queue", empties the queue, and returns code. */
int ossl_err(struct err *err, int code, const char *what);
/* What servers and clients of ours have in common: TLS 1.2 or newer, no renegotiation, no resumption, no compression.
 */
int ossl_ctx_new(const SSL_METHOD *method, SSL_CTX **ret, struct err *err);

/* A server that speaks HTTP/1.1, and nothing to clients that only offer other protocols. */
void ossl_http_only(SSL_CTX *ctx);

/*
 * For a TLS connection on a socket, once: when its full input buffer has room again, libevent waits for the socket,
 * although OpenSSL may hold the rest of a record, behind which nothing may ever come.
 */
int ossl_read_on(struct bufferevent *bev);

/* A certificate for a canonical name and a public key, signed by the CA. The caller owns *ret. */
int ossl_leaf(const struct tls_ca *ca, const char *name, EVP_PKEY *key, X509 **ret, struct err *err);

/* A connection that is the server `name`, or a client that verifies it. The caller owns *ret. */
int ossl_server(struct tls_mint *m, const char *name, SSL **ret, struct err *err);
int ossl_client(struct tls_client *c, const char *name, SSL **ret, struct err *err);
