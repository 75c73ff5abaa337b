/* template.c - see template.h. */
#include "daemon/template.h"

#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "daemon/limits.h"

static const struct template templates[] = {
        { .id = "base", .policy = "host", .names = { "base", "host" } },
};

const struct template *template_at(size_t i) {
        return i < ARRAY_SIZE(templates) ? &templates[i] : NULL;
}

const struct template *template_find(const char *reference) {
        size_t n = strlen(reference);
        char name[CREATE_TEMPLATE];

        if (n > 8 && str_eq(reference + n - 8, ":default"))
                n -= 8;
        if (n >= sizeof(name))
                return NULL;
        (void) snprintf(name, sizeof(name), "%.*s", (int) n, reference);
        for (size_t i = 0; i < ARRAY_SIZE(templates); i++)
                for (size_t k = 0; k < ARRAY_SIZE(templates[i].names) && templates[i].names[k]; k++)
                        if (str_eq(templates[i].names[k], name))
                                return &templates[i];
        return NULL;
}
