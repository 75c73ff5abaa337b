/* decode.h - policy_decode() for a caller that knows the file and the lines of the document. */
#pragma once

#include <stdbool.h>

struct err;
struct field_ctx;
struct json;
struct policy;

/* ctx is the place of the document. On failure *p is unchanged. */
int policy_decode_at(const struct field_ctx *ctx, const struct json *doc, struct policy *p, struct err *err);
/* 1 to 63 characters of [A-Za-z0-9._-], beginning with a letter or digit. */
bool policy_is_name(const char *s);
