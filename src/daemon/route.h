/* route.h - the one table of what the control plane serves. api/openapi.yaml says the same; a test compares them. */
#pragma once

#include <stddef.h>

#include "daemon/auth.h"
#include "daemon/limits.h"

struct request;

struct route {
        const char *method, *pattern; /* {name} stands for one segment */
        enum verb verb;
        void (*fn)(struct request *q);
};

enum { ROUTE_ALLOW = 48 };

/*
 * Finds the route of a path as sent (escapes and all) and decodes its parameters. NULL: none. Then allow has the
 * methods that the path knows, for an Allow header; "" means that it knows none.
 */
const struct route *route_find(const char *method, const char *path, char args[REQUEST_ARGS][REQUEST_ARG],
                               char allow[ROUTE_ALLOW]);
/* All of them; NULL behind the last. */
const struct route *route_at(size_t i);
