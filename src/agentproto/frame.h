/* frame.h - how the encoders of this component write a head before they know the body's length. Private. */
#pragma once

#include "agentproto/agentproto.h"

/* Writes a head and returns where; the encoder then writes the body and hands the place to frame_end(). */
size_t frame_begin(struct wr *w, enum ap_type type, uint32_t id);
void frame_end(struct wr *w, size_t at);
