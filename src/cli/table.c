/* table.c - tables for people: columns as wide as what is in them, two blanks between. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cli/remote.h"

int table_add(struct table *t, const char *const *cells) {
        void *more = realloc(t->cells, (t->n_rows + 1) * sizeof(*t->cells));

        if (!more)
                return -ENOMEM;
        t->cells = more;
        for (size_t i = 0; i < t->n_columns; i++)
                (void) snprintf(t->cells[t->n_rows][i], TABLE_CELL, "%s", cells[i]);
        t->n_rows++;
        return 0;
}

void table_print(const struct table *t) {
        size_t wide[TABLE_COLUMNS] = { 0 };

        for (size_t i = 0; i < t->n_rows; i++)
                for (size_t k = 0; k < t->n_columns; k++)
                        if (strlen(t->cells[i][k]) > wide[k])
                                wide[k] = strlen(t->cells[i][k]);
        for (size_t i = 0; i < t->n_rows; i++) {
                for (size_t k = 0; k < t->n_columns; k++) {
                        bool last = k + 1 == t->n_columns, right = t->right & BIT(k);
                        int pad = (int) (wide[k] - strlen(t->cells[i][k]));

                        (void) printf("%*s", right ? pad : 0, "");
                        remote_print(t->cells[i][k]);
                        (void) printf("%*s", last ? 0 : right ? 2 : pad + 2, "");
                }
                (void) putchar('\n');
        }
}

void table_done(struct table *t) {
        free(t->cells);
        t->cells = NULL;
        t->n_rows = 0;
}

void text_size(char dst[TABLE_CELL], uint64_t bytes) {
        static const struct {
                char unit;
                uint64_t bytes;
        } units[] = { { 'T', 1ull << 40 }, { 'G', 1ull << 30 }, { 'M', 1ull << 20 }, { 'K', 1ull << 10 } };

        for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
                uint64_t tenths = bytes / (units[i].bytes / 10);

                if (bytes < units[i].bytes)
                        continue;
                if (tenths < 100 && tenths % 10 != 0)
                        (void) snprintf(dst, TABLE_CELL, "%u.%u%c", (unsigned) (tenths / 10), (unsigned) (tenths % 10),
                                        units[i].unit);
                else
                        (void) snprintf(dst, TABLE_CELL, "%u%c", (unsigned) (bytes / units[i].bytes), units[i].unit);
                return;
        }
        (void) snprintf(dst, TABLE_CELL, "%u", (unsigned) bytes);
}

void text_span(char dst[TABLE_CELL], uint64_t seconds) {
        if (seconds < 120)
                (void) snprintf(dst, TABLE_CELL, "%us", (unsigned) seconds);
        else if (seconds < 7200)
                (void) snprintf(dst, TABLE_CELL, "%um", (unsigned) (seconds / 60));
        else if (seconds < 172800)
                (void) snprintf(dst, TABLE_CELL, "%uh", (unsigned) (seconds / 3600));
        else
                (void) snprintf(dst, TABLE_CELL, "%ud", (unsigned) (seconds / 86400));
}
