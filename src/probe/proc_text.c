/*
 * proc_text.c - reads the small texts that the kernel offers, and walks their lines in place.
 *
 * Invariant: a text that could not be read is the empty text, so that a walk over it finds nothing.
 */
#include "probe/proc_text.h"

#include <fcntl.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "base/sys.h"

int proc_words(char **at, char *words[], int max) {
        char *p = *at, *end;
        int n = 0;

        if (!*p)
                return -1;
        end = p + strcspn(p, "\n");
        *at = *end ? end + 1 : end;
        *end = '\0';
        for (;;) {
                p += strspn(p, " \t");
                if (!*p)
                        return n;
                if (n < max)
                        words[n++] = p;
                p += strcspn(p, " \t");
                if (*p)
                        *p++ = '\0';
        }
}

bool proc_mount_next(char **at, struct proc_mount *ret) {
        char *w[24];
        int n, dash;

        while ((n = proc_words(at, w, 24)) >= 0) {
                for (dash = 6; dash < n && !str_eq(w[dash], "-"); dash++)
                        ;
                if (dash + 2 >= n)
                        continue;
                *ret = (struct proc_mount){ w[2], w[3], w[4], w[5], w[dash + 1], w[dash + 2] };
                return true;
        }
        return false;
}
