/* control_list.c - GET /v2/sandboxes and its predecessor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/query.h"
#include "daemon/quota.h"
#include "daemon/request.h"
#include "daemon/template.h"
#include "daemon/view.h"
#include "http/server.h"
#include "json/json.h"

struct page {
        struct request *q;
        struct json *list;
        unsigned limit; /* 0: none */
        uint64_t last_ms;
        char last_id[ID_TEXT];
        bool more;
};

/* The limit is counted here, after what the key may not see is left out. */
static int on_row(void *arg, const struct store_sandbox *row) {
        struct page *p = arg;

        if (!auth_may_template(&p->q->auth, row->template))
                return 0;
        if (p->limit && json_len(p->list) == p->limit) {
                p->more = true;
                return 1;
        }
        json_add(p->list, view_listed(p->q->d, row));
        p->last_ms = row->created_ms;
        (void) str_copy(p->last_id, sizeof(p->last_id), row->id);
        return 0;
}

static void list(struct request *q, bool v2) {
        AUTO_FREE struct query_list *w = malloc(sizeof(*w));
        struct page p = { .q = q };
        const struct template *t;
        struct store_sums sums;
        char token[PAGE_TOKEN];
        struct err err = { 0 };
        int r;

        if (!w) {
                reply_error(q, 500, "internal", "out of memory");
                return;
        }
        r = query_list(http_conn_head(q->conn)->query, v2, w, &err);
        if (r < 0) {
                reply_err(q, &err);
                return;
        }
        w->filter.tenant = q->auth.tenant.id;
        p.limit = w->limit;
        p.list = json_new_array();
        if (w->template[0]) {
                t = template_find(w->template);
                w->filter.template = t ? t->id : w->template; /* unknown: nothing is made from it */
        }
        r = store_sandbox_each(q->d->store, &w->filter, on_row, &p, &err);
        if (r < 0) {
                (void) json_free(p.list);
                reply_err(q, &err);
                return;
        }
        if (p.more) {
                query_token(p.last_ms, p.last_id, token);
                reply_header(q, "X-Next-Token", "%s", token);
        }
        if (v2) {
                quota_sums(q->d->quota, q->auth.tenant.id, &sums);
                reply_header(q, "X-Total-Running", "%llu", (unsigned long long) sums.sandboxes);
        }
        reply_json(q, 200, p.list);
}

void control_list_v1(struct request *q) {
        list(q, false);
}

void control_list_v2(struct request *q) {
        list(q, true);
}
