/* files.h - what a call of filesystem.Filesystem is about; watchers that are polled. Private. */
#pragma once

#include "envd/job.h"

struct evbuffer;
struct rpc;

struct watching {
        unsigned what; /* an event whose entry is still to come; 0: none */
        char *name;
};

struct file_call {
        struct job job;
        struct message_file msg; /* texts are the request's */
        char path[AP_PATH_MAX], other[AP_PATH_MAX];
        struct evbuffer *text; /* of a listing */
        size_t n_entries;
        bool watched; /* the watch has begun */
        struct watching watch;
};

/* --- watch.c --- */
bool watch_start(struct rpc *q, const struct json *request);
bool watch_create(struct rpc *q, const struct json *request);
bool watch_poll(struct rpc *q, const struct json *request);
bool watch_remove(struct rpc *q, const struct json *request);
void watch_room(struct rpc *q);
/* Forgets every watcher. */
void watch_drop(struct envd_box *box);
/* --- filesystem.c --- */
/* Message and paths of a call; false: it was answered. */
bool file_read(struct rpc *q, unsigned about, const struct json *request);
/* Tells why a file call failed. */
void file_refused(struct rpc *q, int r, const char *step);
