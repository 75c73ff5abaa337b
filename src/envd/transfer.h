/* transfer.h - contents of files over plain HTTP: GET and POST of /files. Private. */
#pragma once

#include "envd/query.h"
#include "envd/state.h"

struct http_head;

/* path is absolute. */
void download_serve(struct envd_box *box, struct http_conn *c, const struct http_head *head,
                    const struct envd_user *user, const char *path);
void upload_serve(struct envd_box *box, struct http_conn *c, const struct http_head *head, const struct envd_user *user,
                  const struct query *q);

/* A byte range of a file of that size ("bytes=0-9", "bytes=5-", "bytes=-5"). 1: *ret_*; 0: to be ignored; -ERANGE: it
 * lies outside. */
int transfer_range(const char *header, uint64_t size, uint64_t *ret_offset, uint64_t *ret_length);
