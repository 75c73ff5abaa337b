/* plain.c - what envd tells of the sandbox without Connect: variables and usage. */
#include <errno.h>
#include <string.h>

#include "agentproto/agentproto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "envd/job.h"
#include "fileproto/fileproto.h"
#include "http/server.h"
#include "json/json.h"

void plain_envs(struct envd_box *box, struct http_conn *c) {
        struct json *all = json_new_object();

        for (const char *const *env = box->target->env; env && *env; env++) {
                struct buf name = BUF_INIT(65536);
                size_t n = strcspn(*env, "=");

                buf_add(&name, *env, n);
                if ((*env)[n] && !name.bad)
                        json_set_str(all, buf_str(&name), *env + n + 1);
                buf_done(&name);
        }
        answer_json(box->envd, box->target, c, 200, all);
}

/* --- usage: the owner knows of memory and processor, the sandbox of its disk --- */

struct metrics {
        struct call call; /* first */
        struct job job;
};

static void answer(struct metrics *m, uint64_t disk_total, uint64_t disk_used) {
        const struct envd_config *cfg = &m->call.envd->config;
        struct envd_target *t = m->call.box->target;
        struct envd_usage u = { 0 };
        struct json *j;

        job_end(&m->job, true);
        if (!cfg->usage || cfg->usage(t, &u, cfg->arg) < 0) {
                call_error(&m->call, 503, "usage is not known yet");
                return;
        }
        j = json_new_object();
        json_set_int(j, "ts", (int64_t) (clock_real_ms() / 1000));
        json_set_real(j, "cpu_count", u.cpu_count);
        json_set_real(j, "cpu_used_pct", u.cpu_used_pct);
        json_set_int(j, "mem_total", (int64_t) u.mem_total);
        json_set_int(j, "mem_used", (int64_t) u.mem_used);
        json_set_int(j, "mem_cache", (int64_t) u.mem_cache);
        json_set_int(j, "mem_total_mib", (int64_t) (u.mem_total >> 20));
        json_set_int(j, "mem_used_mib", (int64_t) (u.mem_used >> 20));
        json_set_int(j, "disk_total", (int64_t) (disk_total & INT64_MAX));
        json_set_int(j, "disk_used", (int64_t) (disk_used & INT64_MAX));
        answer_json(m->call.envd, t, m->call.conn, 200, j);
}

static void on_ready(void *owner) {
        struct metrics *m = owner;

        job_ask(&m->job, AP_DISK, &(struct fp_request){ .path = "/" });
}

static int on_frame(void *owner, const struct ap_head *head, uint8_t *body, size_t n, struct err *err) {
        struct metrics *m = owner;
        uint64_t total = 0, used = 0;

        if (head->id != m->job.id ||
            (head->type != AP_ERROR && (head->type != AP_USAGE || fp_get_usage(body, n, &total, &used) < 0)))
                return err_set(err, -EPROTO, ERR_PEER, "no answer about a disk");
        answer(m, total, used);
        return 0;
}

static void on_failed(void *owner, int r) {
        (void) r;
        call_error(owner, 503, "the sandbox cannot be reached");
}

static const struct job_ops job_ops = { .on_ready = on_ready, .on_frame = on_frame, .on_failed = on_failed };

static void on_end(struct call *c) {
        job_start(&((struct metrics *) c)->job, c, &job_ops, false);
}

static void on_launched(struct call *c, int r) {
        job_launched(&((struct metrics *) c)->job, r);
}

static void on_free(struct call *c) {
        job_end(&((struct metrics *) c)->job, false);
}

static const struct call_ops metrics_ops = {
        .size = sizeof(struct metrics), .body_max = 1, .on_end = on_end, .on_launched = on_launched, .on_free = on_free
};

void plain_metrics(struct envd_box *box, struct http_conn *c) {
        (void) call_new(box, c, &metrics_ops);
}
