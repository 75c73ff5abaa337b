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
#include "agentproto/vectors.h"
#include "base/rd.h"
#include "base/wr.h"

enum {
        FLAGS = AP_TTY | AP_NO_STDIN | AP_LAUNCHER | AP_SAY_HERE,
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
        put_vectors(w, s->argv, s->argc, s->envp, s->envc);
        ap_end(w, at);
}

void put_texts(struct wr *w, const char *const *vec, size_t n) {
        for (size_t i = 0; i < n; i++)
                ap_put_text(w, vec[i]);
}

void get_texts(struct rd *r, const char **vec, size_t n) {
        for (size_t i = 0; i < n; i++)
                vec[i] = ap_get_text(r);
        vec[n] = NULL;
}

void put_vectors(struct wr *w, const char *const *argv, uint16_t argc, const char *const *envp, uint16_t envc) {
        wr_u16(w, argc);
        wr_u16(w, envc);
        put_texts(w, argv, argc);
        put_texts(w, envp, envc);
}

bool get_vectors(struct rd *r, const char **vec, size_t cap, uint16_t *ret_argc, uint16_t *ret_envc) {
        uint16_t argc = rd_u16(r), envc = rd_u16(r);

        if (r->bad || argc < 1 || argc > AP_ARGS_MAX || envc > AP_ARGS_MAX || (size_t) argc + envc + 2 > cap)
                return false;
        get_texts(r, vec, argc);
        get_texts(r, vec + argc + 1, envc);
        *ret_argc = argc;
        *ret_envc = envc;
        return true;
}

bool is_directory(const char *s) {
        return s && s[0] == '/' && strlen(s) < AP_PATH_MAX;
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
        return is_directory(s->cwd);
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
        if (!get_vectors(&r, vec, vec_cap, &s.argc, &s.envc) || !rd_done(&r) || !is_sane(&s))
                return -EBADMSG;
        s.argv = vec;
        s.envp = vec + s.argc + 1;
        *ret = s;
        return 0;
}
