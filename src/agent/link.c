/*
 * link.c - the agent's control socket.
 *
 * Invariant: the agent never blocks on the host and never loses a byte for it. Output of commands is taken from their
 * pipes only while the buffer is empty; answers have a reserve behind it, and frames from the host are served only
 * while that reserve can hold the answer. A host that stops reading therefore stops the commands, not the agent.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wr.h"
#include "state.h"

enum {
        READ_MAX = AP_CHUNK + AP_HEAD, /* per call: keeps the touched part of the buffer small */
        KEEP_BYTES = 2 * AP_CHUNK,     /* above this the buffer's pages are given back */
};

bool link_flush(struct link *l) {
        ssize_t n;

        if (link_is_empty(l) || !l->writable)
                return false;
        n = send(AP_FD_CONTROL, l->out + l->out_start, l->out_end - l->out_start, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0) {
                if (errno == EPIPE || errno == ECONNRESET)
                        _exit(AGENT_HOST_GONE);
                if (errno != EAGAIN && errno != ENOBUFS)
                        _exit(AGENT_BAD_CONTROL);
                l->writable = false;
                return false;
        }
        l->out_start += (size_t) n;
        if (l->out_start == l->out_end)
                l->out_start = l->out_end = 0;
        return true;
}

bool link_fill(struct link *l) {
        size_t room = sizeof(l->in) - l->in_len;
        ssize_t n;

        if (!l->readable || room == 0)
                return false;
        n = recv(AP_FD_CONTROL, l->in + l->in_len, room < READ_MAX ? room : READ_MAX, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno == ECONNRESET))
                _exit(AGENT_HOST_GONE);
        if (n < 0) {
                if (errno != EAGAIN)
                        _exit(AGENT_BAD_CONTROL);
                l->readable = false;
                return false;
        }
        l->in_len += (size_t) n;
        if (l->in_len > l->in_high)
                l->in_high = l->in_len;
        return true;
}

bool link_has_room(const struct link *l) {
        return sizeof(l->out) - l->out_end >= AGENT_ANSWER;
}

bool link_is_empty(const struct link *l) {
        return l->out_start == l->out_end;
}

struct wr link_answer(struct link *l) {
        return wr_to(l->out + l->out_end, AGENT_ANSWER);
}

void link_commit(struct link *l, const struct wr *w) {
        if (w->bad)
                __builtin_trap(); /* our bug: every answer has a fixed greatest length below AGENT_ANSWER */
        l->out_end += w->len;
}

void link_eat(struct link *l, size_t n) {
        l->in_len -= n;
        memmove(l->in, l->in + n, l->in_len);
        /* What was eaten may be a command's environment: nothing of it stays in a process that lives on. */
        explicit_bzero(l->in + l->in_len, n);
        if (l->in_len == 0 && l->in_high > KEEP_BYTES) {
                (void) madvise(l->in, sizeof(l->in), MADV_DONTNEED);
                l->in_high = 0;
        }
}
