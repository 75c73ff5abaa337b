/* worker.h - what the files of a worker share. Private to src/files. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fileproto/fileproto.h"

enum { WORKER_NAMES = 2048 }; /* bytes of a directory read at once */

/* --- files.c: the connection. Whatever fails there ends the process. --- */
/* The next frame; its body is borrowed until the next call. */
struct ap_head worker_receive(uint8_t **ret_body, size_t *ret_n);
/* Space for a frame of up to n bytes, and the statement that it was written. */
struct wr worker_begin(size_t n);
void worker_commit(const struct wr *w);
void worker_flush(void);
void worker_done(uint32_t id);
/* r is a negative errno. */
void worker_error(uint32_t id, int r, const char *step);
int worker_fd(void);

/* --- entry.c: what a path is. --- */
/* Fills *ret, whose strings lie in static memory or are `path`. */
int entry_read(const char *path, uint32_t flags, struct fp_entry *ret);
/* Queues AP_ENTRY. */
void entry_put(uint32_t id, const struct fp_entry *e);
int entry_send(uint32_t id, const char *path, uint32_t flags);
int entry_set_xattrs(const struct fp_xattrs *x);
/* mkdir -p of everything above the last component, or with that; then it must not be there yet. */
int entry_make_parents(const char *path, bool all);

/* --- tree.c: whole directories. --- */
/* Next name of a directory read in pieces: NULL at the end, or with *ret < 0. Never "." and "..". */
struct names {
        int fd;
        size_t at, len;
        char bytes[WORKER_NAMES] __attribute__((aligned(8)));
};
const struct dirent *names_next(struct names *d, int *ret);
int tree_list(uint32_t id, const struct fp_request *q);
int tree_remove(const char *path, const char **ret_step);

/* --- data.c: contents. Both answer by themselves. --- */
void data_read(uint32_t id, const struct fp_request *q);
void data_write(uint32_t id, const struct fp_request *q);

/* --- watch.c --- */
/* Returns only on failure. */
int watch_run(uint32_t id, const struct fp_request *q);
