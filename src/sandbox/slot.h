/* slot.h - the numbered place that one sandbox holds on this machine. Private to sandbox/. */
#pragma once

#include "sandbox/sandbox.h"

enum {
        SLOT_COUNT = 4096,
        SLOT_RECORD = '{',
        SLOT_UID_FIRST = 0x70000000, /* above what adduser, systemd and container engines hand out, below 2^31 */
};

/* Opens (makes) the run directory and claims a free slot: sb->run_fd, slot_fd, slot, id. */
int slot_claim(struct sandbox *sb, bool rootless, struct err *err);
/* Lets go of the slot, and frees it; closes both descriptors. */
void slot_drop(struct sandbox *sb, bool free_it);
/* File name of a slot in the run directory, and name of its control group. */
void slot_name(char dst[CGROUP_NAME], unsigned slot);
/* True for a slot whose sandbox outlives its maker: the file holds a record, a JSON object. */
bool slot_is_kept(int fd);
/* Name of the socket beside a slot. */
enum { SLOT_SOCKET = CGROUP_NAME + 8 };
void slot_socket(char dst[SLOT_SOCKET], const char *slot);
/* Calls fn for each slot whose holder is gone, while holding it; frees it when fn returns 0. Returns how many. */
int slot_each_dead(int run_fd, int (*fn)(void *arg, const char *name), void *arg);
