/* proc_text.h - reads the small texts that the kernel offers, and walks their lines. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Cuts the next line off *at: its words, split at spaces and tabs, go to words. Returns the number of words (0: an
 * empty line; words beyond max are dropped), or -1 after the last line.
 */
int proc_words(char **at, char *words[], int max);

/* What /proc/self/mountinfo says of one mount. The pointers live in the text that is walked. */
struct proc_mount {
        const char *device, *root, *point, *options, *type, *source;
};

/* False after the last mount. */
bool proc_mount_next(char **at, struct proc_mount *ret);
