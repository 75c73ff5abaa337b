/* state.h - a client's inside, and the parsers of what a server sends. Private. */
#pragma once

#include <sys/queue.h>
#include <sys/types.h>

#include "client/process.h"

struct addrinfo;
struct dial;
struct tls_client;
TAILQ_HEAD(call_list, client_call);

/* A place to connect to; its names are looked up once. */
struct place {
        struct client_url url;
        struct addrinfo *addresses;
};
struct client {
        struct event_base *base;
        struct place server, sandboxes;
        struct tls_client *tls; /* if one of them wants it */
        char key[CLIENT_KEY_TEXT];
        struct call_list calls;
};

/* --- dial.c --- */
/* Connects to the place; done() has a descriptor that it owns, or a negative errno and why. From the loop. */
int dial_new(struct client *c, struct place *place, void (*done)(void *arg, int fd, const struct err *err), void *arg,
             struct dial **ret, struct err *err);
/* Accepts NULL; after this done() does not come. */
struct dial *dial_free(struct dial *d);
void place_done(struct place *p);

/* --- stream.c: messages of a Connect stream --- */
enum stream_event { STREAM_MORE, STREAM_MESSAGE, STREAM_END };
/*
 * The next message at the front of in, taken from it. STREAM_MESSAGE: *ret is the caller's. STREAM_END: the last one;
 * *ret is NULL, or the error in it. -EPROTO: flags, length, or no JSON object.
 */
int stream_next(struct evbuffer *in, enum stream_event *ret_event, struct json **ret, struct err *err);
/* Puts the envelope and the message. */
void stream_put(struct evbuffer *to, const char *text);

/* --- message.c: events of a command --- */
enum process_event { PROCESS_OTHER, PROCESS_START, PROCESS_DATA, PROCESS_GAP, PROCESS_END };
struct process_message {
        enum process_event event;
        uint32_t pid;              /* START */
        uint64_t at;               /* START: place of the first byte that follows; GAP: bytes that are lost */
        enum client_stream stream; /* DATA */
        const char *base64;        /* borrowed from the message */
        struct client_exit exit;   /* END */
};
/* -EPROTO: it is not what it should be. Members that nobody knows are left alone. */
int process_message_read(const struct json *message, struct process_message *ret, struct err *err);
/* Decodes to the end of `to`; the number of bytes, or -EPROTO. */
ssize_t process_bytes(const char *base64, struct evbuffer *to);
