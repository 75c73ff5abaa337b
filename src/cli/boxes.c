/* boxes.c - lists of sandboxes with what they use, for `ps` and `top`. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own.h"
#include "cli/remote.h"
#include "json/json.h"

enum { PAGE = 100, PAGES = 1000, TARGET_MAX = 8192 };

/* Looks up what the sandboxes of one page use, and adds it to them. */
static int add_metrics(struct remote *r, struct json *page, struct err *err) {
        struct buf ids = BUF_INIT(TARGET_MAX), target = BUF_INIT(TARGET_MAX);
        struct client_reply reply = { 0 };
        int n = 0;

        for (size_t i = 0; i < json_len(page); i++) {
                const char *id = json_get_str(json_at(page, i), "sandboxID");

                if (id && client_is_name(id))
                        buf_addf(&ids, "%s%s", ids.len > 0 ? "," : "", id);
        }
        if (ids.len > 0) {
                buf_addf(&target, "/sandboxes/metrics?sandbox_ids=%s", buf_str(&ids));
                n = remote_get(r, buf_str(&target), &reply, err);
        }
        for (size_t i = 0; n == 0 && i < json_len(page); i++) {
                struct json *one = json_at(page, i), *all = json_get(reply.body, "sandboxes");
                const char *id = json_get_str(one, "sandboxID");
                struct json *metrics = id ? json_get(all, id) : NULL;

                if (metrics)
                        json_set(one, "metrics", json_share(metrics));
        }
        client_reply_done(&reply);
        buf_done(&ids);
        buf_done(&target);
        return n;
}

int boxes_list(struct remote *r, const char *filter, bool metrics, struct json **ret, struct err *err) {
        CLEANUP(json_freep) struct json *all = json_new_array();
        char next[CLIENT_TOKEN_TEXT] = "";
        int n = 0;

        for (unsigned page = 0; page < PAGES && n == 0; page++) {
                struct buf target = BUF_INIT(TARGET_MAX);
                struct client_reply reply = { 0 };

                buf_addf(&target, "/v2/sandboxes?limit=%d%s", PAGE, filter);
                if (*next)
                        client_query_add(&target, "nextToken", next);
                n = target.bad ? err_set(err, -EINVAL, ERR_INVALID, "too many conditions")
                               : remote_get(r, buf_str(&target), &reply, err);
                buf_done(&target);
                if (n == 0 && !json_is_array(reply.body))
                        n = err_set(err, -EPROTO, ERR_PEER, "the server's answer is no list of sandboxes");
                if (n == 0 && metrics)
                        n = add_metrics(r, reply.body, err);
                for (size_t i = 0; n == 0 && i < json_len(reply.body); i++)
                        json_add(all, json_share(json_at(reply.body, i)));
                memcpy(next, reply.next_page, sizeof(next));
                client_reply_done(&reply);
                if (!*next)
                        break;
        }
        if (n == 0)
                *ret = TAKE_PTR(all);
        return n;
}

/* Seconds between now and a time of the server; "-" if it is none. */
static void span_cell(char dst[TABLE_CELL], const char *time, bool past) {
        uint64_t then, now = clock_real_ms();

        if (!time || clock_parse(time, &then) < 0)
                (void) snprintf(dst, TABLE_CELL, "-");
        else
                text_span(dst, (past ? (now > then ? now - then : 0) : then > now ? then - now : 0) / 1000);
}

static void size_cell(char dst[TABLE_CELL], const struct json *m, const char *key, const char *limit) {
        int64_t used = json_get_int(m, key, -1), of = json_get_int(m, limit, -1);
        char a[TABLE_CELL], b[TABLE_CELL];

        (void) snprintf(dst, TABLE_CELL, "-");
        if (!m || used < 0)
                return;
        text_size(a, (uint64_t) used);
        text_size(b, of > 0 ? (uint64_t) of : 0);
        (void) snprintf(dst, TABLE_CELL, "%.20s/%.20s", a, of > 0 ? b : "-");
}

static void cpu_cell(char dst[TABLE_CELL], const struct json *m) {
        double pct = m ? json_get_real(m, "cpuUsedPct", -1) : -1;

        if (pct < 0)
                (void) snprintf(dst, TABLE_CELL, "-");
        else
                (void) snprintf(dst, TABLE_CELL, "%.1f%%", pct < 1e6 ? pct : 1e6);
}

static const char *text_of(const struct json *o, const char *key) {
        const char *s = json_get_str(o, key);

        return s && *s ? s : "-";
}

int boxes_print(const struct json *list, bool wide) {
        static const char *const names[] = { "ID", "NAME", "TEMPLATE", "STATE", "CPU", "MEM", "DISK", "AGE", "ENDS" };
        static const char *const narrow_names[] = { "ID", "NAME", "TEMPLATE", "STATE", "CPU", "MEM", "AGE", "ENDS" };
        struct table t = { .n_columns = wide ? 9 : 8, .right = wide ? 0x1f0 : 0xf0 };
        int r = table_add(&t, wide ? names : narrow_names);

        for (size_t i = 0; r == 0 && i < json_len(list); i++) {
                const struct json *one = json_at(list, i), *m = json_get(one, "metrics");
                char cpu[TABLE_CELL], mem[TABLE_CELL], disk[TABLE_CELL], age[TABLE_CELL], ends[TABLE_CELL];
                const char *cells[TABLE_COLUMNS] = { text_of(one, "sandboxID"),
                                                     text_of(one, "name"),
                                                     json_get_str(one, "alias") ? text_of(one, "alias")
                                                                                : text_of(one, "templateID"),
                                                     text_of(one, "state"),
                                                     cpu,
                                                     mem };

                cpu_cell(cpu, m);
                size_cell(mem, m, "memUsed", "memTotal");
                size_cell(disk, m, "diskUsed", "diskTotal");
                span_cell(age, json_get_str(one, "startedAt"), true);
                span_cell(ends, json_get_str(one, "endAt"), false);
                cells[6] = wide ? disk : age;
                cells[7] = wide ? age : ends;
                cells[8] = ends;
                r = table_add(&t, cells);
        }
        if (r == 0)
                table_print(&t);
        table_done(&t);
        return r;
}
