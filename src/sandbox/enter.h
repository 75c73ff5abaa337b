/* enter.h - the supervisor's own place: root, or a user namespace of the caller's. Private to sandbox/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;

/* The uid that started us, counted in the host's initial namespace. */
uint32_t enter_caller_uid(void);
uint32_t enter_caller_gid(void);
bool enter_is_rootless(void);
/* Puts harmless placeholders at the fixed numbers that the agent inherits. */
int enter_reserve(struct err *err);
