/* cases.h - the data cases of test/data/http: what they say, and what the parser makes of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;

enum { CASE_MAX = 64 * 1024 };

/*
 * A file: a first line "request" or "response METHOD" (then maybe "eof"), then "# comment" lines, then the bytes, then
 * a line "=> " and the expected dump. Line ends of the file mean nothing between the two; \r \n \t \\ \xNN are bytes.
 */
struct http_case {
        char name[64];
        bool response, eof;
        char method[16];
        char *bytes;
        size_t n;
        char *expected;
};

/* Reads all cases of a folder, sorted by name. Returns how many; exits with a message if a file is wrong. */
size_t cases_read(const char *folder, struct http_case **ret);
/* Feeds the bytes in pieces of `step` (the first one `first` long) and describes every event in out. */
void case_dump(const struct http_case *c, size_t first, size_t step, struct buf *out);
