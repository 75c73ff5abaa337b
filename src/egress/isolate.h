/*
 * isolate.h - this process gives up what it does not need, in stages that are called in this order.
 *
 * It reads what strangers write, so nothing it could be made to do may matter: another user, no capability, no file, no
 * program, no socket but TCP and UDP.
 */
#pragma once

struct err;

/* Descriptors above the control socket are closed; limits; no core; not traceable. */
int isolate_start(struct err *err);
/* Root becomes the user gabion-egress if there is one, else nobody; no capabilities, no new privileges. */
int isolate_user(struct err *err);
/* Landlock without a single rule: no file can be opened from here on. A kernel without Landlock is an error. */
int isolate_files(struct err *err);
/* The system calls of the loop and no others. Last. */
int isolate_calls(struct err *err);
