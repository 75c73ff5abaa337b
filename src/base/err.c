/* err.c - filling and wrapping the error value. Nothing here allocates. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef err_set /* macros for the analyzer only, see err.h */
#undef err_wrap

int err_set(struct err *err, int code, enum err_kind kind, const char *fmt, ...) {
        va_list ap;

        err->code = code;
        err->kind = kind;
        va_start(ap, fmt);
        (void) vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
        va_end(ap);
        return code;
}

int err_wrap(struct err *err, const char *fmt, ...) {
        char old[sizeof(err->msg)];
        va_list ap;
        size_t n;

        memcpy(old, err->msg, sizeof(old));
        va_start(ap, fmt);
        (void) vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
        va_end(ap);
        n = strlen(err->msg);
        (void) snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", old);
        return err->code;
}
