/*
 * found.h - what was found in sandboxes while they ran: drift, broken rules of `monitor`, use of watched files. Each
 * goes into the audit log; what was answered also into the events, and a sandbox that was frozen says why.
 */
#pragma once

#include <stdbool.h>

struct box;
struct daemon;
struct json;
struct wp_event;

/* A record of the warden that is no attempt to reach something: takes it. False: it is one. */
bool found_take(struct daemon *d, const char *sandbox, const struct json *record);
/* The warden says that it is no longer as planned. */
void found_drift(struct box *b, const struct wp_event *e);
/* The warden lists it as frozen; why is in the events. */
void found_frozen(struct box *b);
/* Why it stands still; NULL: it runs. */
struct json *found_why(const struct box *b);
