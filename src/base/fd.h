/* fd.h - whole reads and writes on descriptors, bounded. All return negative errno on failure. */
#pragma once

#include <stddef.h>

/* Writes all n bytes (retrying EINTR; the descriptor must be blocking). */
int fd_write_all(int fd, const void *p, size_t n);
/* Reads until end of file or until cap-1 bytes; NUL-terminates. Returns the length, or -EFBIG if more was there. */
int fd_read_upto(int fd, char *dst, size_t cap);
/* Opens path below dir_fd for reading and reads it as fd_read_upto() does. */
int fd_read_at(int dir_fd, const char *path, char *dst, size_t cap);
/* Opens path below dir_fd for writing (must exist) and writes text in one write(). */
int fd_write_at(int dir_fd, const char *path, const char *text);
