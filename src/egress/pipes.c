/* pipes.c - see pipes.h. */
#include "egress/pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "egress/limits.h"

struct pipes {
        struct pipe_pair *stock;
        size_t n, max; /* made and not closed */
};

int pipes_new(size_t max, struct pipes **ret, struct err *err) {
        struct pipes *p = calloc(1, sizeof(*p));

        if (!p)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "pipes: out of memory");
        p->max = max;
        *ret = p;
        return 0;
}

static void discard(struct pipes *p, struct pipe_pair *pair) {
        (void) close(pair->read_fd);
        (void) close(pair->write_fd);
        free(pair);
        p->n--;
}

struct pipes *pipes_free(struct pipes *p) {
        while (p && p->stock) {
                struct pipe_pair *pair = p->stock;

                p->stock = pair->next;
                discard(p, pair);
        }
        free(p);
        return NULL;
}

struct pipe_pair *pipes_take(struct pipes *p) {
        struct pipe_pair *pair = p->stock;
        int fds[2];

        if (pair) {
                p->stock = pair->next;
                return pair;
        }
        if (p->n >= p->max || pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0)
                return NULL;
        pair = malloc(sizeof(*pair));
        (void) fcntl(fds[0], F_SETPIPE_SZ, EGRESS_SPLICE_BYTES);
        /* Near the limit of a user's pipe pages the kernel makes pipes of one page: worse than copying. */
        if (!pair || fcntl(fds[0], F_GETPIPE_SZ) < EGRESS_SPLICE_LEAST) {
                (void) close(fds[0]);
                (void) close(fds[1]);
                free(pair);
                return NULL;
        }
        *pair = (struct pipe_pair){ .read_fd = fds[0], .write_fd = fds[1] };
        p->n++;
        return pair;
}

void pipes_give(struct pipes *p, struct pipe_pair *pair, int is_empty) {
        if (!is_empty) {
                discard(p, pair);
                return;
        }
        pair->next = p->stock;
        p->stock = pair;
}
