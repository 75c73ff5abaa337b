/* pipes.h - a bounded stock of empty pipes for splice(2). */
#pragma once

#include <stddef.h>

struct err;
struct pipes;

struct pipe_pair {
        struct pipe_pair *next; /* in the stock */
        int read_fd, write_fd;
};

/* At most max pipes are ever made; they are made when first needed. */
int pipes_new(size_t max, struct pipes **ret, struct err *err);
/* Every pipe must have come back. */
struct pipes *pipes_free(struct pipes *p);
/* NULL when all are out or the kernel has no more: the caller copies instead. */
struct pipe_pair *pipes_take(struct pipes *p);
/* Takes the pair. is_empty: it can be used again; otherwise it is closed with what is in it. */
void pipes_give(struct pipes *p, struct pipe_pair *pair, int is_empty);
