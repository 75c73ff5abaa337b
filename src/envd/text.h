/* text.h - the small texts of the wire: signatures, permissions, times, ends of commands, paths. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "envd/limits.h"

/* The signature of a file URL; op is "read" or "write", expiration may be NULL. */
void text_signature(char dst[ENVD_SIGNATURE], const char *path, const char *op, const char *user, const char *token,
                    const char *expiration);
/* Same texts? Takes the same time for all texts of one length. */
bool text_is_secret(const char *given, const char *expected);
/* As Go writes a mode: "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx", "dtrwxrwxrwx". */
void text_mode(char dst[ENVD_MODE], uint32_t mode);
/* RFC 3339 with the digits of the fraction that are needed (0, 3, 6 or 9). A time outside the years 1 to 9999 is 1970.
 */
void text_time(char dst[ENVD_TIME], int64_t seconds, uint32_t nanoseconds);
/* In place, ASCII only. */
void text_lower(char *s);
/* As Go writes a process state: "exit status 1", "signal: killed". */
void text_exit(char dst[ENVD_EXIT], bool signalled, uint32_t code);
/*
 * An absolute path without ".", ".." and doubled slashes: "" is home, "~/x" and "x" are below home. 0, -EINVAL
 * ("~other"), -ENAMETOOLONG.
 */
int text_path(char *dst, size_t cap, const char *home, const char *path);
/* The last part of such a path; "/" of the root. */
const char *text_name(const char *path);
