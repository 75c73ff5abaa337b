/*
 * seccomp-gen-tree.c - turns the tables into a classic BPF program that is small and quick to install.
 *
 * Theory of operation. The kernel runs a new program once for every call number to learn which are allowed whatever
 * their arguments (its allow bitmap), and compiles it: the fewer instructions, and the fewer on each path, the
 * quicker. So the numbers are one binary search over ranges of equal answers, and the arguments of a call are looked
 * at only behind its number: one load per argument, then again a binary search over the values.
 *
 * Instructions are laid down from the last to the first. Every jump of classic BPF goes forward, so whatever an
 * instruction jumps to is already there and its distance known. Conditional jumps reach 255 instructions; what lies
 * farther is copied nearby (a return) or reached through an unconditional jump.
 */
#include <stdbool.h>
#include <string.h>

#include "base/own.h"
#include "seccomp-gen.h"

enum {
        OP_LOAD = 0x20,
        OP_AND = 0x54,
        OP_JA = 0x05,
        OP_JEQ = 0x15,
        OP_JGE = 0x35,
        OP_RET = 0x06,
        REACH = 250, /* of 255: room for the copies that one jump may need */
        SPANS = GEN_CALLS * 2,
        NEEDLES = 2, /* compared one after the other at the end of a search */
};

#define RET_KILL_PROCESS 0x80000000u
#define RET_ENOSYS 0x00050026u
#define X32_BIT 0x40000000u

/* Where to go: an instruction, counted from the end of the program, or a return value. */
struct target {
        bool is_ret;
        uint32_t at;
};

/* Values from lo up to the next span's lo. */
struct span {
        uint32_t lo;
        struct target to;
};

struct spans {
        struct span s[SPANS];
        unsigned n;
};

/* The lines of a rule that are still possible, and the arguments already looked at. */
struct state {
        const struct gen_line *lines[GEN_LINES];
        unsigned n, done;
};

struct memo {
        struct state state;
        struct target to;
};

struct code {
        struct sys_bpf_insn rev[GEN_INSNS]; /* last instruction first */
        unsigned n;
        struct memo memo[GEN_LINES]; /* decisions of the present rule: INET and INET6 share theirs */
        unsigned n_memo;
};

static bool same(struct target a, struct target b) {
        return a.is_ret == b.is_ret && a.at == b.at;
}

static struct target answer(uint32_t value) {
        return (struct target){ .is_ret = true, .at = value };
}

static struct target put(struct code *a, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k) {
        if (a->n == GEN_INSNS)
                GEN_DIE("program too long");
        a->rev[a->n] = (struct sys_bpf_insn){ code, jt, jf, k };
        return (struct target){ .at = a->n++ };
}

/* Makes the target an instruction that a jump laid down next can reach. */
static struct target near(struct code *a, struct target t) {
        if (!t.is_ret)
                return a->n - t.at <= REACH ? t : put(a, OP_JA, 0, 0, a->n - t.at - 1);
        for (unsigned i = a->n; i > 0 && a->n - i < REACH; i--)
                if (a->rev[i - 1].code == OP_RET && a->rev[i - 1].k == t.at)
                        return (struct target){ .at = i - 1 };
        return put(a, OP_RET, 0, 0, t.at);
}

static struct target jump(struct code *a, uint16_t code, uint32_t k, struct target yes, struct target no) {
        yes = near(a, yes);
        no = near(a, no);
        return put(a, code, (uint8_t) (a->n - yes.at - 1), (uint8_t) (a->n - no.at - 1), k);
}

static void add_span(struct spans *s, uint32_t lo, struct target to) {
        if (s->n > 0 && same(s->s[s->n - 1].to, to))
                return;
        if (s->n == SPANS)
                GEN_DIE("too many ranges");
        s->s[s->n++] = (struct span){ lo, to };
}

/* A single value between two parts of the same span needs one comparison, as a boundary on each side two. */
static bool is_needle(const struct spans *s, unsigned i) {
        return i > 0 && i + 1 < s->n && same(s->s[i - 1].to, s->s[i + 1].to) && s->s[i + 1].lo == s->s[i].lo + 1;
}

/* Takes up to NEEDLES such values out of the span at i; returns the index of the next span. */
static unsigned skip_needles(const struct spans *s, unsigned i) {
        unsigned end = i + 1;

        while (end < i + 2 * NEEDLES && is_needle(s, end))
                end += 2;
        return end;
}

static struct target leaf(struct code *a, const struct spans *s, unsigned from) {
        struct target to = s->s[from].to;

        for (unsigned end = skip_needles(s, from), i = from + 1; i < end; i += 2)
                to = jump(a, OP_JEQ, s->s[i].lo, s->s[i].to, to);
        return to;
}

/* heads: the spans that are left once the needles are out. */
static struct target halve(struct code *a, const struct spans *s, const unsigned *heads, unsigned n) {
        struct target low, high;

        if (n == 1)
                return leaf(a, s, heads[0]);
        high = halve(a, s, heads + n / 2, n - n / 2);
        low = halve(a, s, heads, n / 2);
        return jump(a, OP_JGE, s->s[heads[n / 2]].lo, high, low);
}

static struct target search(struct code *a, const struct spans *s) {
        unsigned heads[SPANS], n = 0;

        for (unsigned i = 0; i < s->n; i = skip_needles(s, i))
                heads[n++] = i;
        return halve(a, s, heads, n);
}

static const struct gen_cond *cond_on(const struct gen_line *l, unsigned arg) {
        for (unsigned i = 0; i < l->n; i++)
                if (l->conds[i].arg == arg)
                        return &l->conds[i];
        return NULL;
}

static bool has_value(const struct gen_cond *c, uint32_t v) {
        for (unsigned i = 0; i < c->n; i++)
                if (c->set[i] == v)
                        return true;
        return false;
}

/* What remains of st once argument arg is v, or (v = NULL) is none of the values that any line names. */
static struct state narrow(const struct state *st, unsigned arg, const uint32_t *v) {
        struct state next = { .done = st->done | BIT(arg) };

        for (unsigned i = 0; i < st->n; i++) {
                const struct gen_cond *c = cond_on(st->lines[i], arg);

                if (!c || (v && has_value(c, *v)))
                        next.lines[next.n++] = st->lines[i];
        }
        return next;
}

/* The smallest value above *after (or from 0) that a line names for the argument. */
static bool next_value(const struct state *st, unsigned arg, const uint32_t *after, uint32_t *found) {
        bool any = false;
        uint32_t best = 0;

        for (unsigned i = 0; i < st->n; i++) {
                const struct gen_cond *c = cond_on(st->lines[i], arg);

                for (unsigned k = 0; c && k < c->n; k++)
                        if ((!after || c->set[k] > *after) && (!any || c->set[k] < best)) {
                                best = c->set[k];
                                any = true;
                        }
        }
        *found = best;
        return any;
}

static const struct gen_cond *first_open(const struct state *st) {
        for (unsigned i = 0; st->n > 0 && i < st->lines[0]->n; i++)
                if (!(st->done & BIT(st->lines[0]->conds[i].arg)))
                        return &st->lines[0]->conds[i];
        return NULL;
}

/* Goes as deep as a rule has arguments. */
static struct target decide(struct code *a, const struct state *st) {
        const struct gen_cond *c = first_open(st);
        struct spans s = { .n = 0 };
        struct target other, to;
        struct state next;
        uint32_t v, last;

        if (st->n == 0)
                GEN_DIE("a rule without else");
        if (!c)
                return answer(gen_ret(&st->lines[0]->answer));
        for (unsigned i = 0; i < a->n_memo; i++)
                if (memcmp(&a->memo[i].state, st, sizeof(*st)) == 0)
                        return a->memo[i].to;
        next = narrow(st, c->arg, NULL);
        other = decide(a, &next);
        add_span(&s, 0, other);
        for (bool more = next_value(st, c->arg, NULL, &v); more; more = next_value(st, c->arg, &last, &v)) {
                next = narrow(st, c->arg, &v);
                to = decide(a, &next);
                if (s.n > 0 && s.s[s.n - 1].lo == v)
                        s.n--; /* the value follows its neighbour, or is 0: no room for "other" between them */
                add_span(&s, v, to);
                if (v != UINT32_MAX)
                        add_span(&s, v + 1, other);
                last = v;
        }
        to = near(a, search(a, &s));
        if (to.at != a->n - 1)
                (void) put(a, OP_JA, 0, 0, a->n - to.at - 1);
        if (c->mask != UINT32_MAX)
                (void) put(a, OP_AND, 0, 0, c->mask);
        to = put(a, OP_LOAD, 0, 0, 16 + 8 * c->arg); /* the low half; both architectures are little-endian */
        if (a->n_memo < GEN_LINES)
                a->memo[a->n_memo++] = (struct memo){ *st, to };
        return to;
}

void gen_tree(const struct gen_table *t, unsigned profile, struct gen_program *ret) {
        static struct code a;
        static struct spans s;
        struct target rule[GEN_CALLS], top;
        unsigned end;

        a = (struct code){ .n = 0 };
        s.n = 0;
        for (unsigned i = t->n_native; i-- > 0;) {
                const struct gen_answer *ans = &t->calls[i].answers[profile];
                struct state st = { .n = 0 };

                rule[i] = answer(gen_ret(ans));
                if (ans->kind != GEN_RULE)
                        continue;
                a.n_memo = 0;
                st.n = gen_rule_lines(t, ans->name, st.lines);
                rule[i] = decide(&a, &st);
        }
        for (unsigned i = 0, next = 0; i < t->n_native; i++) {
                if ((unsigned) t->calls[i].nr != next)
                        add_span(&s, next, answer(RET_ENOSYS));
                add_span(&s, (uint32_t) t->calls[i].nr, rule[i]);
                next = (unsigned) t->calls[i].nr + 1;
        }
        end = (unsigned) t->calls[t->n_native - 1].nr + 1;
        add_span(&s, end, answer(RET_ENOSYS));
        if (t->audit_arch == 0xc000003e) {
                add_span(&s, X32_BIT, answer(RET_KILL_PROCESS));
                /* -1 is what a tracer writes to skip a call: it must stay an ordinary unknown number. */
                add_span(&s, UINT32_MAX, answer(RET_ENOSYS));
        }
        top = near(&a, search(&a, &s));
        if (top.at != a.n - 1)
                (void) put(&a, OP_JA, 0, 0, a.n - top.at - 1);
        top = put(&a, OP_LOAD, 0, 0, 0);
        (void) jump(&a, OP_JEQ, t->audit_arch, top, answer(RET_KILL_PROCESS));
        (void) put(&a, OP_LOAD, 0, 0, 4);
        ret->n = a.n;
        for (unsigned i = 0; i < a.n; i++)
                ret->insns[i] = a.rev[a.n - 1 - i];
}
