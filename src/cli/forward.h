/* forward.h - HTTP from a port of this machine to a port of a sandbox. */
#pragma once

#include "cli/remote.h"

/* Takes fd, a listening socket. Serves until SIGINT or SIGTERM. */
int forward_serve(struct client *c, const struct client_box *box, uint16_t port, int fd, struct err *err);
