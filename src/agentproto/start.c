/*
 * start.c - the frames about commands of a sandbox that lives on by itself. See agentproto.h.
 *
 *   AP_START    u32 flags, uid, credit; u16 rows, columns; str tag; text cwd; u16 argc, envc; texts
 *   AP_ENV      u16 n, n texts
 *   AP_ATTACH   u8 by, flags; u32 value; str tag; u64 from; u32 credit
 *   AP_RUNNING  u32 number, pid; u64 at
 *   AP_COMMAND  u32 number, pid, uid; u8 flags; u64 kept, end; str tag; u16 n, n bytes of what
 *   what        text cwd, u8 cut, u16 argc, argc texts
 *
 * Invariant: as in agentproto.c, a value has one form on the wire.
 */
#include <errno.h>
#include <string.h>

#include "agentproto/agentproto.h"
#include "agentproto/vectors.h"
#include "base/rd.h"
#include "base/wr.h"

void ap_put_start(struct wr *w, uint32_t id, const struct ap_start *s) {
        size_t at = ap_begin(w, AP_START, id);

        wr_u32(w, s->flags);
        wr_u32(w, s->uid);
        wr_u32(w, s->credit);
        wr_u16(w, s->rows);
        wr_u16(w, s->columns);
        wr_str(w, s->tag);
        ap_put_text(w, s->cwd);
        put_vectors(w, s->argv, s->argc, s->envp, s->envc);
        ap_end(w, at);
}

int ap_get_start(void *body, size_t n, struct ap_start *ret, const char **vec, size_t vec_cap) {
        struct rd r = rd_from(body, n);
        struct ap_start s = { .flags = rd_u32(&r) };

        s.uid = rd_u32(&r);
        s.credit = rd_u32(&r);
        s.rows = rd_u16(&r);
        s.columns = rd_u16(&r);
        rd_str(&r, s.tag, sizeof(s.tag));
        s.cwd = ap_get_text(&r);
        if (!get_vectors(&r, vec, vec_cap, &s.argc, &s.envc) || !rd_done(&r) ||
            (s.flags & ~(uint32_t) (AP_TTY | AP_NO_STDIN | AP_HOLD)) || !is_directory(s.cwd))
                return -EBADMSG;
        s.argv = vec;
        s.envp = vec + s.argc + 1;
        *ret = s;
        return 0;
}

void ap_put_env(struct wr *w, const char *const *env, uint16_t n) {
        size_t at = ap_begin(w, AP_ENV, 0);

        wr_u16(w, n);
        put_texts(w, env, n);
        w->bad |= n > AP_ARGS_MAX || w->len - at > AP_ENV_MAX;
        ap_end(w, at);
}

int ap_get_env(const void *body, size_t n, const char **vec, size_t vec_cap) {
        struct rd r = rd_from(body, n);
        uint16_t count = rd_u16(&r);

        if (n > AP_ENV_MAX - AP_HEAD || count > AP_ARGS_MAX || count + 1u > vec_cap)
                return -EBADMSG;
        get_texts(&r, vec, count);
        return rd_done(&r) ? 0 : -EBADMSG;
}

void ap_put_attach(struct wr *w, uint32_t id, const struct ap_attach *a) {
        size_t at = ap_begin(w, AP_ATTACH, id);

        wr_u8(w, a->by);
        wr_u8(w, a->flags);
        wr_u32(w, a->value);
        wr_str(w, a->tag);
        wr_u64(w, a->from);
        wr_u32(w, a->credit);
        ap_end(w, at);
}

int ap_get_attach(const void *body, size_t n, struct ap_attach *ret) {
        struct rd r = rd_from(body, n);
        struct ap_attach a = { .by = rd_u8(&r) };

        a.flags = rd_u8(&r);
        a.value = rd_u32(&r);
        rd_str(&r, a.tag, sizeof(a.tag));
        a.from = rd_u64(&r);
        a.credit = rd_u32(&r);
        if (!rd_done(&r) || a.by > AP_BY_TAG || (a.flags & ~AP_QUIET) || (a.by == AP_BY_TAG) != (a.tag[0] != '\0'))
                return -EBADMSG;
        *ret = a;
        return 0;
}

void ap_put_running(struct wr *w, uint32_t id, const struct ap_running *run) {
        size_t at = ap_begin(w, AP_RUNNING, id);

        wr_u32(w, run->number);
        wr_u32(w, run->pid);
        wr_u64(w, run->at);
        ap_end(w, at);
}

int ap_get_running(const void *body, size_t n, struct ap_running *ret) {
        struct rd r = rd_from(body, n);
        struct ap_running run = { .number = rd_u32(&r) };

        run.pid = rd_u32(&r);
        run.at = rd_u64(&r);
        if (!rd_done(&r))
                return -EBADMSG;
        *ret = run;
        return 0;
}

void ap_put_gap(struct wr *w, uint32_t id, uint64_t lost) {
        size_t at = ap_begin(w, AP_GAP, id);

        wr_u64(w, lost);
        ap_end(w, at);
}

int ap_get_gap(const void *body, size_t n, uint64_t *ret) {
        struct rd r = rd_from(body, n);
        uint64_t v = rd_u64(&r);

        if (!rd_done(&r) || v == 0)
                return -EBADMSG;
        *ret = v;
        return 0;
}

void ap_put_command(struct wr *w, uint32_t id, const struct ap_command *c) {
        size_t at = ap_begin(w, AP_COMMAND, id);

        wr_u32(w, c->number);
        wr_u32(w, c->pid);
        wr_u32(w, c->uid);
        wr_u8(w, c->flags);
        wr_u64(w, c->kept);
        wr_u64(w, c->end);
        wr_str(w, c->tag);
        wr_u16(w, c->n_what);
        wr_bytes(w, c->what, c->n_what);
        ap_end(w, at);
}

int ap_get_command(const void *body, size_t n, struct ap_command *ret) {
        struct rd r = rd_from(body, n);
        struct ap_command c = { .number = rd_u32(&r) };

        c.pid = rd_u32(&r);
        c.uid = rd_u32(&r);
        c.flags = rd_u8(&r);
        c.kept = rd_u64(&r);
        c.end = rd_u64(&r);
        rd_str(&r, c.tag, sizeof(c.tag));
        c.n_what = rd_u16(&r);
        c.what = rd_bytes(&r, c.n_what);
        if (!rd_done(&r) || c.kept > c.end || c.n_what > AP_WHAT ||
            (c.flags & ~(AP_IS_TTY | AP_HAS_EXITED | AP_HAS_STDIN)))
                return -EBADMSG;
        *ret = c;
        return 0;
}

uint16_t ap_put_what(uint8_t dst[AP_WHAT], const char *cwd, const char *const *argv, uint16_t argc) {
        struct wr w = wr_to(dst, AP_WHAT), head;
        size_t at, good;
        uint16_t n = 0;

        ap_put_text(&w, strlen(cwd) < AP_WHAT / 2 ? cwd : "");
        at = w.len;
        wr_u8(&w, 0);
        wr_u16(&w, 0);
        for (good = w.len; n < argc; n++, good = w.len) {
                ap_put_text(&w, argv[n]);
                if (w.bad)
                        break;
        }
        head = wr_to(dst + at, 3);
        wr_u8(&head, n < argc);
        wr_u16(&head, n);
        return (uint16_t) good;
}

int ap_get_what(const void *what, size_t n, const char **ret_cwd, const char **argv, size_t cap, bool *ret_cut) {
        struct rd r = rd_from(what, n);
        const char *cwd = ap_get_text(&r);
        uint8_t cut = rd_u8(&r);
        uint16_t argc = rd_u16(&r);

        if (r.bad || cut > 1 || argc + 1u > cap)
                return -EBADMSG;
        get_texts(&r, argv, argc);
        if (!rd_done(&r))
                return -EBADMSG;
        *ret_cwd = cwd;
        *ret_cut = cut;
        return 0;
}
