/*
 * fileproto.h - frames of a connection that is about files: AP_FILES was its first frame. Pure: bytes in, values out.
 *
 * The other end is a process of the sandbox with the rights of one of its users. Requests are served one after the
 * other, in order; `id` is the host's. Each has one answer: AP_ERROR, or what stands behind it below. A stream of
 * AP_DATA has the connection to itself, so the socket is its flow control. docs/protocol/agent.md has the details.
 *
 *   AP_STAT        path                          AP_ENTRY
 *   AP_LIST_DIR    path, length = depth          some AP_ENTRY, AP_DONE; the directory itself is not among them
 *   AP_MKDIR       path                          AP_ENTRY; parents are made; EEXIST if it is a directory already
 *   AP_MOVE        path, other = destination     AP_ENTRY of the destination; its parents are made
 *   AP_REMOVE      path                          AP_DONE, also if there was nothing; directories with all they hold
 *   AP_READ        path, offset, length          AP_ENTRY, AP_DATA..., AP_DATA_END (AP_ERROR if reading fails later)
 *   AP_WRITE       path, then AP_DATA..., END    AP_ENTRY; parents are made, what was there is overwritten
 *   AP_SET_XATTRS  struct fp_xattrs              AP_ENTRY
 *   AP_WATCH       path                          AP_DONE, then AP_EVENT until the host closes the connection
 *   AP_DISK        path                          AP_USAGE
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentproto/agentproto.h"

struct wr;

enum {
        FP_FRAME_MAX = 64 * 1024, /* of every frame on such a connection */
        FP_XATTRS = 32,           /* attributes of one file */
        FP_XATTR_BYTES = 8192,    /* names and values of one file */
        FP_XATTR_NAME = 256,      /* with its NUL */
        FP_DEPTH = 128,           /* directories within directories that are listed or removed */
        FP_WATCHES = 1024,        /* directories of one AP_WATCH */
};

enum {                     /* fp_request.flags */
       FP_WITH_XATTRS = 1, /* entries have the attributes user.* */
       FP_RECURSIVE = 2,   /* AP_WATCH: directories below too, also new ones */
       FP_WITH_ENTRY = 4,  /* AP_WATCH: an event about a file that is there is followed by its AP_ENTRY */
};

/* Paths are absolute and shorter than AP_PATH_MAX. */
struct fp_request {
        uint32_t flags;
        uint64_t offset, length; /* length UINT64_MAX: to the end */
        const char *path, *other;
};

struct fp_xattr {
        const char *name;
        const uint8_t *value;
        uint16_t n;
};

/* Of a link: mode, size, owner and time are its own, target_mode and target those of what it leads to. */
struct fp_entry {
        uint32_t mode;        /* st_mode */
        uint32_t target_mode; /* no link: 0; a link that leads nowhere: 0 */
        uint32_t uid, gid;
        uint64_t size;
        int64_t mtime_s;
        uint32_t mtime_ns;
        const char *path, *target; /* target "": no link, or it leads nowhere */
        struct fp_xattr xattrs[FP_XATTRS];
        uint16_t n_xattrs;
};

/* All attributes whose names start with prefix ("user." at least) are replaced by these. */
struct fp_xattrs {
        const char *path, *prefix;
        struct fp_xattr xattrs[FP_XATTRS];
        uint16_t n_xattrs;
};

enum fp_what { FP_CREATE = 1, FP_MODIFY, FP_DELETE, FP_RENAME, FP_CHMOD, FP_OVERFLOW /* events or directories lost */ };

struct fp_event {
        uint8_t what, has_entry; /* AP_ENTRY follows */
        const char *name;        /* relative to the watched directory; "" of FP_OVERFLOW */
};

/* As in agentproto.h: encoders write a whole frame, decoders take the body; strings point into it. */
void fp_put_request(struct wr *w, enum ap_type type, uint32_t id, const struct fp_request *q);
void fp_put_entry(struct wr *w, uint32_t id, const struct fp_entry *e);
void fp_put_xattrs(struct wr *w, uint32_t id, const struct fp_xattrs *x);
void fp_put_event(struct wr *w, uint32_t id, const struct fp_event *e);
void fp_put_usage(struct wr *w, uint32_t id, uint64_t total_bytes, uint64_t used_bytes);
int fp_get_request(enum ap_type type, const void *body, size_t n, struct fp_request *ret);
int fp_get_entry(const void *body, size_t n, struct fp_entry *ret);
int fp_get_xattrs(const void *body, size_t n, struct fp_xattrs *ret);
int fp_get_event(const void *body, size_t n, struct fp_event *ret);
int fp_get_usage(const void *body, size_t n, uint64_t *ret_total, uint64_t *ret_used);
