/*
 * ring.c - the last AP_KEPT bytes of a command's output.
 *
 * Bytes are counted over both streams from the command's first; the byte number n lies at n % AP_KEPT. A run says from
 * which byte on the stream is which, so that the order between standard output and error is kept too.
 *
 * Invariant: the first run holds the byte `tail`, and bytes before `tail` are never given out.
 */
#include "state.h"

static struct run *run_at(struct ring *r, uint32_t i) {
        return &r->runs[(r->first + i) % AGENT_RUNS];
}

static void drop_before(struct ring *r, uint64_t tail) {
        if (tail > r->tail)
                r->tail = tail;
        while (r->n > 1 && run_at(r, 1)->from <= r->tail) {
                r->first = (r->first + 1) % AGENT_RUNS;
                r->n--;
        }
}

size_t ring_room(struct ring *r, unsigned stream, uint64_t need, uint8_t **ret) {
        size_t at = (size_t) (r->head % AP_KEPT), room = AP_KEPT - at, free = AP_KEPT;

        if (need < r->head)
                free -= (size_t) (r->head - need);
        if (r->n == AGENT_RUNS && run_at(r, r->n - 1)->stream != stream) {
                if (run_at(r, 1)->from > need)
                        return 0;
                drop_before(r, run_at(r, 1)->from);
        }
        *ret = r->bytes + at;
        return room < free ? room : free;
}

void ring_add(struct ring *r, unsigned stream, size_t n) {
        if (r->n == 0 || run_at(r, r->n - 1)->stream != stream)
                *run_at(r, r->n++) = (struct run){ .from = r->head, .stream = stream };
        r->head += n;
        if (r->head > AP_KEPT)
                drop_before(r, r->head - AP_KEPT);
}

size_t ring_peek(const struct ring *r, uint64_t at, const uint8_t **ret, unsigned *ret_stream) {
        uint32_t i = r->n;
        uint64_t end = r->head;
        size_t place = (size_t) (at % AP_KEPT), n;

        if (at >= r->head)
                return 0;
        while (i-- > 0) { /* from the end: a reader is seldom far behind */
                const struct run *run = &r->runs[(r->first + i) % AGENT_RUNS];

                if (run->from <= at) {
                        *ret_stream = (unsigned) run->stream;
                        break;
                }
                end = run->from;
        }
        n = (size_t) (end - at);
        *ret = r->bytes + place;
        return n < AP_KEPT - place ? n : AP_KEPT - place;
}
