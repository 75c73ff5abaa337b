/*
 * musl.h - what our sources use and musl lacks. The build includes it before each file that it compiles for musl. The
 * same functions of glibc give the same: what a user reads does not depend on the C library.
 */
#pragma once

#include <stddef.h>

/* The symbol, such as "ENOENT", or NULL if there is no such error. */
const char *strerrorname_np(int code);
/* What strerror() gives for it, or NULL. */
const char *strerrordesc_np(int code);

/* Private. Made by tools/errno-gen.c; the index is the error. Holes have no name. */
struct errno_text {
        const char *name, *text;
};
extern const struct errno_text errno_texts[];
extern const size_t errno_texts_count;
