/*
 * strerror.c - errors by name and by text, with glibc's words: musl has no names, and other texts for some ("I/O
 * error"). strerror() takes the place of musl's, also for its own "%m".
 */
#include <stdint.h>
#include <stdio.h>

#include "musl/musl.h"

char *strerror(int code);

static const struct errno_text *find(int code) {
        return code >= 0 && (size_t) code < errno_texts_count && errno_texts[code].name ? &errno_texts[code] : NULL;
}

const char *strerrorname_np(int code) {
        const struct errno_text *t = find(code);

        return t ? t->name : NULL;
}

const char *strerrordesc_np(int code) {
        const struct errno_text *t = find(code);

        return t ? t->text : NULL;
}

char *strerror(int code) {
        static _Thread_local char text[32];
        const struct errno_text *t = find(code);

        if (!t)
                (void) snprintf(text, sizeof(text), "Unknown error %d", code);
        return t ? (char *) (uintptr_t) t->text : text;
}
