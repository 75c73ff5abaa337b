/*
 * tls.h - TLS for the egress proxy and the API: whose name a ClientHello carries, a local CA with leaves on demand,
 * bufferevents for both sides of an opened connection, and those of a server of our own. The only includer of OpenSSL;
 * nobody else sees its types. The process must ignore SIGPIPE, because OpenSSL writes to sockets with write().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/host.h"

struct bufferevent;
struct err;
struct event_base;

/* --- ClientHello, without opening the connection --- */

enum { TLS_HELLO_MAX = 32 * 1024, TLS_ALPNS = 8, TLS_ALPN_TEXT = 32, TLS_CLOSE_S = 5 };

enum tls_look {
        TLS_MORE,    /* nothing is known yet */
        TLS_HELLO,   /* *ret is filled */
        TLS_NOT_TLS, /* the first bytes are no TLS handshake record */
        TLS_REFUSED, /* malformed, too long, several names, a name that is no host name; err says which */
};

struct tls_hello {
        char name[HOST_NAME];                /* canonical; "" when the client named nobody */
        bool ech;                            /* encrypted_client_hello is there: real or grease, nobody can tell */
        uint16_t version_min, version_max;   /* 0x0303 is TLS 1.2; grease is left out */
        char alpn[TLS_ALPNS][TLS_ALPN_TEXT]; /* printable ones only, in the client's order */
        size_t n_alpn;
};

struct tls_inspector; /* shared by all connections */
struct tls_peek;      /* one connection, until its hello is known */

int tls_inspector_new(struct tls_inspector **ret, struct err *err);
struct tls_inspector *tls_inspector_free(struct tls_inspector *i);
void tls_inspector_freep(struct tls_inspector **i);

int tls_peek_new(struct tls_inspector *i, struct tls_peek **ret, struct err *err);
/*
 * p holds everything the client has sent so far, from the first byte, and is only read; what was seen in earlier calls
 * must not have changed. Bytes behind the hello do not matter. After anything but TLS_MORE the answer stays the same.
 */
enum tls_look tls_peek_look(struct tls_peek *k, const void *p, size_t n, struct tls_hello *ret, struct err *err);
struct tls_peek *tls_peek_free(struct tls_peek *k);
void tls_peek_freep(struct tls_peek **k);

/* --- the local CA of opened connections --- */

struct tls_ca; /* key and certificate */

/* P-256, self-signed, may sign leaves and no further CA. name goes into the subject. The caller owns *ret. */
int tls_ca_new(const char *name, unsigned days, struct tls_ca **ret, struct err *err);
/* "ca.key" (0600) and "ca.pem" (0644) below dir_fd. Existing files are never overwritten (-EEXIST). */
int tls_ca_save(const struct tls_ca *ca, int dir_fd, struct err *err);
/* -ENOENT: not there. -EPERM: others may read the key. -EKEYEXPIRED: valid for less than a day from now. */
int tls_ca_load(int dir_fd, struct tls_ca **ret, struct err *err);
/* Key and certificate as one PEM text, for memory that outlives the process. The caller wipes and frees *ret. */
int tls_ca_text(const struct tls_ca *ca, char **ret, struct err *err);
/* The same read back. -EKEYEXPIRED as tls_ca_load(). */
int tls_ca_from_text(const char *text, struct tls_ca **ret, struct err *err);
/* The certificate, for trust stores. Borrowed. */
const char *tls_ca_pem(const struct tls_ca *ca);
struct tls_ca *tls_ca_free(struct tls_ca *ca);
void tls_ca_freep(struct tls_ca **ca);

struct tls_mint; /* leaves of one CA: one key for all, cached by name; one per sandbox or trust domain */

/* Borrows ca for its life. Above max_names the leaf used longest ago is forgotten. */
int tls_mint_new(const struct tls_ca *ca, size_t max_names, struct tls_mint **ret, struct err *err);
struct tls_mint *tls_mint_free(struct tls_mint *m);
void tls_mint_freep(struct tls_mint **m);

/*
 * Speaks TLS as the server `name` (canonical) on top of `under`, whose input may already hold the ClientHello. On
 * success *ret owns `under`. TLS 1.2 or newer, http/1.1 only, no tickets, no renegotiation; a client that names another
 * host, or none, is refused in the handshake. BEV_EVENT_CONNECTED tells its end. Callbacks are deferred.
 */
int tls_accept(struct tls_mint *m, struct bufferevent *under, const char *name, struct bufferevent **ret,
               struct err *err);

/* --- the side of the world outside --- */

struct tls_client;

/* ca_file: PEM bundle that replaces the system's store, or NULL. extra_pem: more roots as text, or NULL. */
int tls_client_new(const char *ca_file, const char *extra_pem, struct tls_client **ret, struct err *err);
struct tls_client *tls_client_free(struct tls_client *c);
void tls_client_freep(struct tls_client **c);

/* Speaks TLS to the server `name` on top of `under`; as tls_accept(). The chain and the name are verified. */
int tls_connect(struct tls_client *c, struct bufferevent *under, const char *name, struct bufferevent **ret,
                struct err *err);
/* The same on a connected, non-blocking socket, with one copy less. Takes fd on success. */
int tls_connect_fd(struct tls_client *c, struct event_base *base, int fd, const char *name, struct bufferevent **ret,
                   struct err *err);

/* --- a server of our own --- */

struct tls_server;

/* certificate: PEM, the chain from the server's own on; key: PEM, unencrypted, which must not be everybody's. */
int tls_server_new(const char *certificate, const char *key, struct tls_server **ret, struct err *err);
struct tls_server *tls_server_free(struct tls_server *s);
/* A client's connection; takes fd, also on failure (NULL). Otherwise as tls_accept(), for any name. */
struct bufferevent *tls_server_open(struct tls_server *s, struct event_base *base, int fd);
/* All is written: close_notify. */
void tls_server_bye(struct bufferevent *bev);

/* --- both sides --- */

/*
 * What went wrong, for an event callback with BEV_EVENT_ERROR or BEV_EVENT_EOF: -EKEYREJECTED certificate not accepted,
 * -ECONNRESET cut off without close_notify (what came before may be incomplete: abort the other leg), -EPROTO the rest.
 * -ENODATA is the good end: the peer said close_notify.
 */
int tls_error(struct bufferevent *bev, short what, struct err *err);
/* "TLSv1.3" and the like; "" before the handshake has ended. */
const char *tls_version(struct bufferevent *bev);
/*
 * Takes bev: forgets its callbacks and what is unread, writes what is left, says close_notify, and frees it when that
 * has gone out, or after TLS_CLOSE_S without progress. bufferevent_free() is the other end: at once, and dirty.
 */
void tls_close(struct bufferevent *bev);
