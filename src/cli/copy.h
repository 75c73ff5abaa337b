/* copy.h - `gabion cp`: one file each way; trees are walked by cp_up.c and cp_down.c. */
#pragma once

#include <sys/types.h>

#include "cli/remote.h"

enum { COPY_PATH = 4096, COPY_DEPTH = 64 };

struct copy {
        struct remote *remote;
        struct client_box box;
        const char *user; /* NULL: the sandbox's own */
        bool follow_links;
        unsigned left_out;       /* links and the like */
        struct json *executable; /* paths of uploads that should be */
};

/* What is at a path of the sandbox. */
enum copy_kind { COPY_NONE, COPY_FILE, COPY_DIRECTORY, COPY_OTHER };
int copy_look(struct copy *c, const char *path, enum copy_kind *ret, mode_t *ret_mode, struct err *err);
/* The last part of a path; "" for "/" and what ends in "." or "..". */
const char *copy_name(const char *path, char dst[COPY_PATH]);
/* dir/name. -ENAMETOOLONG. */
int copy_join(char dst[COPY_PATH], const char *dir, const char *name, struct err *err);

/* cp_file.c: contents between a descriptor and a path of the sandbox. length < 0: until its end. */
int copy_send(struct copy *c, int fd, off_t length, const char *path, struct err *err);
int copy_receive(struct copy *c, const char *path, int fd, struct err *err);

/* cp_up.c, cp_down.c: a file or directory to exactly that place. */
int copy_up(struct copy *c, const char *from, const char *to, struct err *err);
int copy_down(struct copy *c, const char *from, const char *to, struct err *err);
