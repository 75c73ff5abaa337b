/* frames.h - the first frames to an agent. Private to sandbox/. */
#pragma once

#include "sandbox/child.h"

enum { FRAMES_MAX = 4 * AP_FRAME_MAX };

/* Queues AP_CONFIGURE, unless the agent has it, and AP_SPAWN, and writes as much of them as the socket takes. */
int frames_queue(const struct plan *plan, const struct sandbox_request *req, struct sandbox *sb, const struct child *c,
                 bool configure, struct err *err);
