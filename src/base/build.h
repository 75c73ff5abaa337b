/* build.h - which build this program is: the linker's build id, a hash of everything that was linked into it. */
#pragma once

enum { BUILD_TEXT = 2 * 20 + 1 }; /* SHA-1 as hex digits + NUL */

/* "" if the program was linked without one. The same sources and tools give the same id, wherever they are built. */
void build_id(char dst[BUILD_TEXT]);
