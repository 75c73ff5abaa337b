/* own.h - scope-bound ownership. */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(n) (1u << (n))

static inline void own_freep(void *p) {
        free(*(void **) p);
}

static inline void own_closep(const int *fd) {
        if (*fd >= 0)
                (void) close(*fd); /* never retried: on Linux the fd is gone even after EINTR */
}

#define AUTO_FREE CLEANUP(own_freep)
#define AUTO_FD CLEANUP(own_closep)

/* Hand ownership on: the variable is emptied, so its cleanup does nothing. */
#define TAKE(var, empty)                                                                                               \
        __extension__({                                                                                                \
                __typeof__(var) own_taken_ = (var);                                                                    \
                (var) = (empty);                                                                                       \
                own_taken_;                                                                                            \
        })
#define TAKE_PTR(p) TAKE(p, NULL)
#define TAKE_FD(fd) TAKE(fd, -1)
