/* decode.h - policy_decode() for a caller that knows the file and the lines of the document. */
#pragma once

#include <stdbool.h>

struct err;
struct field_ctx;
struct json;
struct policy;

/* ctx is the place of the document. On failure *p is unchanged. A preset is left unexpanded. */
int policy_decode_at(const struct field_ctx *ctx, const struct json *doc, struct policy *p, struct err *err);
/* The same for a document that may have version, name and network only. */
int policy_decode_net_at(const struct field_ctx *ctx, const struct json *doc, struct policy *p, struct err *err);
/* policy_check(), except that a preset may still have to be expanded. */
int policy_check_parts(const struct policy *p, struct err *err);
/* Puts a copy (policy_copy()) in place. */
void policy_move(struct policy *to, struct policy *from);
/* 1 to 63 characters of [A-Za-z0-9._-], beginning with a letter or digit. */
bool policy_is_name(const char *s);
