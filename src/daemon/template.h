/* template.h - what sandboxes can be made from. One is built in: this machine's own /usr, read-only. */
#pragma once

#include <stddef.h>

struct template {
        const char *id;     /* as in E2B's API, and in the store */
        const char *policy; /* its name in a policy */
        const char *names[3];
};

/* By id, alias, or either with ":default"; NULL: there is none. */
const struct template *template_find(const char *reference);
/* All of them; NULL behind the last. */
const struct template *template_at(size_t i);
