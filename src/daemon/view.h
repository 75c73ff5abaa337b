/* view.h - sandboxes as clients see them: the objects of the E2B protocol. The caller owns what is returned. */
#pragma once

#include "store/store.h"

struct daemon;
struct box;
struct json;
struct request;

/* "creating" "running" "paused" "gone" */
const char *view_state(enum store_state s);
/* What create and connect answer: with tokens. */
struct json *view_sandbox(const struct daemon *d, const struct box *b);
/* A row of a list. */
struct json *view_listed(const struct daemon *d, const struct store_sandbox *row);
/* One sandbox in full; tokens only if the key may connect. */
struct json *view_detail(const struct request *q, const struct store_sandbox *row);
