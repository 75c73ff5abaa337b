/*
 * spawn.c - AP_SPAWN, the one frame with parts of variable number. See agentproto.h.
 *
 *   u32 flags, controls, uid, gid, securebits, output_credit; u16 rows, columns
 *   u8 n, n * { u8 resource, u64 soft, u64 hard }
 *   u16 n, n * 8 bytes of filter
 *   str probe; text cwd
 *   u16 argc, u16 envc, argc texts, envc texts           text = u32 length, bytes, NUL (the length does not count it)
 *
 * Invariant: every string a decoded ap_spawn points at ends with a NUL inside the body. The NUL travels on the wire, so
 * that decoding neither copies nor changes the body. Lengths have 32 bits because the kernel takes arguments of 128
 * KiB.
 */
#include <errno.h>
#include <string.h>

#include "agentproto/agentproto.h"
#include "base/rd.h"
#include "base/wr.h"

enum {
        FLAGS = AP_TTY | AP_NO_STDIN | AP_LAUNCHER,
        CONTROLS = AP_DROP_CAPS | AP_NO_NEW_PRIVS | AP_LANDLOCK | AP_SECCOMP | AP_SECUREBITS | AP_RLIMIT | AP_IDS |
                   AP_CLOSE_FDS | AP_SECCOMP_NOTIFY,
        INSN_BYTES = 8,
};

void ap_put_spawn(struct wr *w, uint32_t id, const struct ap_spawn *s) {
        size_t at = ap_begin(w, AP_SPAWN, id);
        const uint32_t words[] = { s->flags, s->controls, s->uid, s->gid, s->securebits, s->output_credit };

        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                wr_u32(w, words[i]);
        wr_u16(w, s->rows);
        wr_u16(w, s->columns);
        wr_u8(w, s->n_rlimits);
        w->bad |= s->n_rlimits > AP_RLIMITS;
        for (size_t i = 0; !w->bad && i < s->n_rlimits; i++) {
                wr_u8(w, s->rlimits[i].resource);
                wr_u64(w, s->rlimits[i].soft);
                wr_u64(w, s->rlimits[i].hard);
        }
        wr_u16(w, s->n_filter);
        wr_bytes(w, s->filter, (size_t) s->n_filter * INSN_BYTES);
        wr_str(w, s->probe);
        ap_put_text(w, s->cwd);
        wr_u16(w, s->argc);
        wr_u16(w, s->envc);
        for (size_t i = 0; i < s->argc; i++)
                ap_put_text(w, s->argv[i]);
        for (size_t i = 0; i < s->envc; i++)
                ap_put_text(w, s->envp[i]);
        ap_end(w, at);
}

static void get_vector(struct rd *r, const char **vec, size_t n) {
        for (size_t i = 0; i < n; i++)
                vec[i] = ap_get_text(r);
        vec[n] = NULL;
}

/* What no host of ours writes, and what would mean something else to the kernel than it says. */
static bool is_sane(const struct ap_spawn *s) {
        bool notify = s->controls & AP_SECCOMP_NOTIFY, filter = s->controls & AP_SECCOMP;

        if ((s->flags & ~(uint32_t) FLAGS) || (s->controls & ~(uint32_t) CONTROLS))
                return false;
        if ((notify && !filter) || (filter && s->n_filter == 0))
                return false;
        if (s->uid == UINT32_MAX || s->gid == UINT32_MAX) /* "leave it as it is" to setresuid() */
                return false;
        if (s->probe[0] && s->probe[0] != '/')
                return false;
        return s->cwd && s->cwd[0] == '/' && strlen(s->cwd) < AP_PATH_MAX;
}

int ap_get_spawn(void *body, size_t n, struct ap_spawn *ret, const char **vec, size_t vec_cap) {
        struct rd r = rd_from(body, n);
        struct ap_spawn s = { .flags = rd_u32(&r) };

        s.controls = rd_u32(&r);
        s.uid = rd_u32(&r);
        s.gid = rd_u32(&r);
        s.securebits = rd_u32(&r);
        s.output_credit = rd_u32(&r);
        s.rows = rd_u16(&r);
        s.columns = rd_u16(&r);
        s.n_rlimits = rd_u8(&r);
        if (s.n_rlimits > AP_RLIMITS)
                return -EBADMSG;
        for (size_t i = 0; i < s.n_rlimits; i++) {
                s.rlimits[i].resource = rd_u8(&r);
                s.rlimits[i].soft = rd_u64(&r);
                s.rlimits[i].hard = rd_u64(&r);
        }
        s.n_filter = rd_u16(&r);
        if (s.n_filter > AP_FILTER_MAX)
                return -EBADMSG;
        s.filter = rd_bytes(&r, (size_t) s.n_filter * INSN_BYTES);
        rd_str(&r, s.probe, sizeof(s.probe));
        s.cwd = ap_get_text(&r);
        s.argc = rd_u16(&r);
        s.envc = rd_u16(&r);
        if (r.bad || s.argc < 1 || s.argc > AP_ARGS_MAX || s.envc > AP_ARGS_MAX ||
            (size_t) s.argc + s.envc + 2 > vec_cap)
                return -EBADMSG;
        s.argv = vec;
        s.envp = vec + s.argc + 1;
        get_vector(&r, s.argv, s.argc);
        get_vector(&r, s.envp, s.envc);
        if (!rd_done(&r) || !is_sane(&s))
                return -EBADMSG;
        *ret = s;
        return 0;
}
