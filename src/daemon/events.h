/* events.h - what happens, told to the store, the log, and whoever follows over HTTP. */
#pragma once

#include <stdint.h>

struct daemon;
struct err;
struct events;
struct json;
struct request;

int events_new(struct daemon *d, struct events **ret, struct err *err);
/* Every follower's request must be over. */
struct events *events_free(struct events *e);

/* Ends all streams in an orderly way. */
void events_end(struct events *e);

/*
 * Records that something happens to a sandbox ("" = none) of a tenant (its id); kind is dotted, data an object, taken,
 * or NULL. Negative: it is not recorded, and then it must not happen either.
 */
int event_emit(struct daemon *d, const char *tenant, const char *sandbox, const char *kind, struct json *data,
               struct err *err);
/* The same for what has happened already; a failure is logged. */
void event_note(struct daemon *d, const char *tenant, const char *sandbox, const char *kind, struct json *data);

/* GET /gabion/v1/events: a list, or with Accept: text/event-stream a stream that goes on. */
void events_serve(struct request *q);
