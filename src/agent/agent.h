/* agent.h - the agent's program as bytes, linked into gabion (base/embed.S; Meson: agent_image_dep). */
#pragma once

#include <stddef.h>
#include <stdint.h>

extern const uint8_t gabion_agent_image[];
extern const size_t gabion_agent_image_size;
