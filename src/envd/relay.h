/* relay.h - two streams that have become one: bytes go both ways as they come. Private. */
#pragma once

#include "envd/state.h"

/* Takes both. The box owns it from here on. */
void relay_new(struct envd_box *box, struct bufferevent *client, struct bufferevent *inside);
