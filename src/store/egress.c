/* egress.c - attempts of sandboxes to reach something: a bounded number of the newest for each, whatever others do. */
#include <errno.h>
#include <stdint.h>

#include "base/err.h"
#include "db.h"

static int add_one(struct store *s, const struct store_attempt *a, unsigned keep, struct err *err) {
        int r = db_run(s,
                       db_query(s, err,
                                "INSERT INTO egress(sandbox, n, denied, data) SELECT ?1, 1 + coalesce((SELECT max(n)"
                                " FROM egress WHERE sandbox=?1), 0), ?2, ?3 WHERE EXISTS"
                                " (SELECT 1 FROM sandbox WHERE id=?1)",
                                "sis", a->sandbox, (int) a->denied, a->data),
                       err);

        if (r <= 0)
                return r; /* of a sandbox that is forgotten: so is this */
        return db_run(s,
                      db_query(s, err,
                               "DELETE FROM egress WHERE sandbox=?1 AND n <= (SELECT max(n) FROM egress WHERE"
                               " sandbox=?1) - ?2",
                               "su", a->sandbox, (uint64_t) keep),
                      err);
}

int store_egress_add(struct store *s, const struct store_attempt *all, size_t n, unsigned keep, struct err *err) {
        int r = store_settle(s, err);

        if (r == 0)
                r = store_begin(s, err);
        if (r < 0)
                return r;
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = add_one(s, &all[i], keep, err);
        if (r >= 0)
                return store_settle(s, err);
        db_undo(s);
        return r;
}

int store_egress_each(struct store *s, const char *sandbox, bool denied, store_egress_fn fn, void *arg,
                      struct err *err) {
        sqlite3_stmt *st = db_query(s, err, "SELECT n, data FROM egress WHERE sandbox=? AND denied >= ? ORDER BY n",
                                    "si", sandbox, (int) denied);
        int r = 0, more = 0;

        while (r == 0 && (more = db_step(s, st, err)) == 1)
                r = fn(arg, db_u64(st, 0), (const char *) sqlite3_column_text(st, 1));
        if (more == 1)
                (void) sqlite3_reset(st);
        return more < 0 ? more : r;
}
