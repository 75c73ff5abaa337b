/* err.h - the one error type. See CONTRIBUTING.md, "Errors". */
#pragma once

enum err_kind { ERR_INTERNAL, ERR_INVALID, ERR_DENIED, ERR_NOT_FOUND, ERR_BUSY, ERR_LIMIT, ERR_PEER };

/* A plain value, never allocated: it must work after clone(), under OOM and across a pipe. */
struct err {
        int code;           /* negative errno; 0 means "no error" */
        enum err_kind kind; /* what the caller may tell a stranger */
        char msg[320];      /* for operators; may name host paths, so never sent to a sandbox */
};

/* Fills *err and returns code, so that failing is one statement. */
int err_set(struct err *err, int code, enum err_kind kind, const char *fmt, ...)
        __attribute__((format(printf, 4, 5), nonnull(1)));

/* Puts context in front of the message ("context: message") and returns err->code. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3), nonnull(1)));

#ifdef __clang_analyzer__
/* The analyzer reads one file at a time and would follow paths on which a failure returns success. */
static inline int err_negative(int r) {
        if (r >= 0)
                __builtin_unreachable();
        return r;
}
#define err_set(...) err_negative(err_set(__VA_ARGS__))
#define err_wrap(...) err_negative(err_wrap(__VA_ARGS__))
#endif
