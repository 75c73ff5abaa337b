/* attempts.h - what sandboxes tried to reach: taken from the warden, kept in the store, a bounded number of each. */
#pragma once

struct daemon;
struct request;

/* Asks the warden, and goes on asking while it is there. */
void attempts_follow(struct daemon *d);

/* GET /gabion/v1/sandboxes/ID/egress and .../denials: what was tried; and what was refused, calls to the kernel too. */
void admin_egress(struct request *q);
void admin_denials(struct request *q);
