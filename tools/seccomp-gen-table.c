/*
 * seccomp-gen-table.c - reads and checks the tables.
 *
 * Invariant: when gen_read() returns, every call of this architecture, by our number file and by the compiler's
 * headers, has exactly one row, every row names a known call, and every rule it names exists and ends in `else`.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "seccomp-gen.h"

enum { LINE_MAX_BYTES = 512, FIELDS = 6 };

struct value {
        char name[GEN_NAME];
        uint32_t v;
};

struct reader {
        FILE *f;
        const char *file;
        unsigned at;
        char text[LINE_MAX_BYTES];
        char *field[FIELDS];
        unsigned n;
};

static struct value values[GEN_VALUES];
static unsigned n_values;

static void copy(char *dst, size_t cap, const char *src) {
        if (str_copy(dst, cap, src) < 0)
                GEN_DIE("'%s' is too long", src);
}

/* Decimal or 0x; at most 32 bits. */
static bool to_u32(const char *s, uint32_t *ret) {
        uint64_t v = 0;

        if (!str_has_prefix(s, "0x"))
                return str_to_u64(s, UINT32_MAX, &v) == 0 && (*ret = (uint32_t) v, true);
        s += 2;
        if (!*s || strlen(s) > 8)
                return false;
        for (; *s; s++) {
                const char *digits = "0123456789abcdef", *d = strchr(digits, *s);

                if (!d)
                        return false;
                v = v << 4 | (uint64_t) (d - digits);
        }
        *ret = (uint32_t) v;
        return true;
}

static char *trim(char *s) {
        size_t n;

        s += strspn(s, " \t");
        n = strlen(s);
        while (n > 0 && strchr(" \t\n", s[n - 1]))
                s[--n] = '\0';
        return s;
}

static void reader_open(struct reader *r, const char *dir, const char *name, const char *suffix) {
        char path[4096];

        if (snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffix) >= (int) sizeof(path))
                GEN_DIE("path too long");
        *r = (struct reader){ .f = fopen(path, "re"), .file = name };
        if (!r->f)
                GEN_DIE("%s: %s", path, strerrorname_np(errno));
}

/* The next line that is neither empty nor a remark, cut at sep. False at the end, where the file is closed. */
static bool reader_next(struct reader *r, char sep) {
        while (fgets(r->text, sizeof(r->text), r->f)) {
                char *s = r->text;

                r->at++;
                if (!strchr(s, '\n'))
                        GEN_DIE("%s:%u: line too long", r->file, r->at);
                s = trim(s);
                if (!*s || *s == '#')
                        continue;
                for (r->n = 0; s; r->n++) {
                        char *next = strchr(s, sep);

                        if (r->n == FIELDS)
                                GEN_DIE("%s:%u: too many fields", r->file, r->at);
                        if (next)
                                *next++ = '\0';
                        r->field[r->n] = trim(s);
                        s = next;
                }
                return true;
        }
        (void) fclose(r->f);
        return false;
}

static void need_fields(const struct reader *r, unsigned n) {
        if (r->n != n)
                GEN_DIE("%s:%u: %u fields, expected %u", r->file, r->at, r->n, n);
}

static void read_values(const char *dir) {
        struct reader r;

        reader_open(&r, dir, "values", ".txt");
        while (reader_next(&r, ' ')) {
                need_fields(&r, 2);
                if (n_values == GEN_VALUES)
                        GEN_DIE("too many values");
                copy(values[n_values].name, GEN_NAME, r.field[0]);
                if (!to_u32(r.field[1], &values[n_values++].v))
                        GEN_DIE("values.txt:%u: bad number", r.at);
        }
}

static uint32_t value_of(const struct reader *r, const char *s) {
        uint32_t v;

        if (to_u32(s, &v))
                return v;
        for (unsigned i = 0; i < n_values; i++)
                if (str_eq(values[i].name, s))
                        return values[i].v;
        GEN_DIE("%s:%u: unknown value '%s'", r->file, r->at, s);
}

static struct gen_answer read_answer(const struct reader *r, const char *s) {
        static const struct {
                const char *name;
                int code;
        } errnos[] = {
                { "EPERM", EPERM },
                { "ENOSYS", ENOSYS },
                { "EINVAL", EINVAL },
                { "ENOTTY", ENOTTY },
                { "EOPNOTSUPP", EOPNOTSUPP },
                { "ENOPROTOOPT", ENOPROTOOPT },
                { "EAFNOSUPPORT", EAFNOSUPPORT },
                { "EPROTONOSUPPORT", EPROTONOSUPPORT },
        };
        struct gen_answer a = { .kind = GEN_ERRNO };

        if (str_eq(s, "allow"))
                return (struct gen_answer){ .kind = GEN_ALLOW };
        if (str_has_prefix(s, "rule ")) {
                a.kind = GEN_RULE;
                copy(a.name, GEN_NAME, s + 5);
                return a;
        }
        if (str_has_prefix(s, "notify ")) {
                a.kind = GEN_NOTIFY;
                s += 7;
        }
        copy(a.name, GEN_NAME, s);
        for (size_t i = 0; i < ARRAY_SIZE(errnos); i++)
                if (str_eq(errnos[i].name, s))
                        a.code = errnos[i].code;
        if (!a.code)
                GEN_DIE("%s:%u: unknown answer '%s'", r->file, r->at, s);
        return a;
}

/* aN=V,V or aN&MASK=V,V */
static void read_cond(const struct reader *r, char *s, struct gen_cond *c) {
        char *eq = strchr(s, '='), *mask, *next;

        if (s[0] != 'a' || s[1] < '0' || s[1] > '5' || !eq)
                GEN_DIE("%s:%u: bad condition '%s'", r->file, r->at, s);
        *eq++ = '\0';
        *c = (struct gen_cond){ .arg = (unsigned) (s[1] - '0'), .mask = UINT32_MAX };
        mask = s + 2;
        if (*mask && *mask != '&')
                GEN_DIE("%s:%u: bad condition '%s'", r->file, r->at, s);
        if (*mask)
                c->mask = value_of(r, mask + 1);
        for (s = eq; s; s = next) {
                next = strchr(s, ',');
                if (next)
                        *next++ = '\0';
                if (c->n == GEN_SET)
                        GEN_DIE("%s:%u: more than %d values", r->file, r->at, GEN_SET);
                c->set[c->n] = value_of(r, s);
                if (c->set[c->n] & ~c->mask)
                        GEN_DIE("%s:%u: %s lies outside the mask", r->file, r->at, s);
                c->n++;
        }
}

static void check_line(const struct gen_table *t, const struct gen_line *l, const struct reader *r) {
        if (l->answer.kind == GEN_RULE)
                GEN_DIE("%s:%u: a rule may not name a rule", r->file, r->at);
        for (const struct gen_line *o = t->lines; o < l; o++) {
                if (!str_eq(o->rule, l->rule))
                        continue;
                if (o->n == 0)
                        GEN_DIE("%s:%u: %s goes on after its else", r->file, r->at, l->rule);
                for (unsigned i = 0; i < o->n; i++)
                        for (unsigned k = 0; k < l->n; k++)
                                if (o->conds[i].arg == l->conds[k].arg && o->conds[i].mask != l->conds[k].mask)
                                        GEN_DIE("%s:%u: argument %u has two masks", r->file, r->at, l->conds[k].arg);
        }
}

static void read_rules(struct gen_table *t, const char *dir) {
        struct reader r;

        reader_open(&r, dir, "rules", ".txt");
        while (reader_next(&r, '|')) {
                struct gen_line *l = &t->lines[t->n_lines];
                char *s = r.field[1], *next;

                need_fields(&r, 4);
                if (++t->n_lines > GEN_LINES)
                        GEN_DIE("too many rule lines");
                copy(l->rule, GEN_NAME, r.field[0]);
                for (; !str_eq(r.field[1], "else") && s; s = next) {
                        next = strchr(s, ' ');
                        if (next)
                                *next++ = '\0';
                        if (l->n == GEN_CONDS)
                                GEN_DIE("rules.txt:%u: too many conditions", r.at);
                        read_cond(&r, s, &l->conds[l->n++]);
                }
                l->answer = read_answer(&r, r.field[2]);
                check_line(t, l, &r);
        }
}

static struct gen_call *find_call(struct gen_table *t, const char *name) {
        for (unsigned i = 0; i < t->n_calls; i++)
                if (str_eq(t->calls[i].name, name))
                        return &t->calls[i];
        return NULL;
}

static void read_profiles(struct gen_table *t, const char *dir) {
        struct reader r;

        reader_open(&r, dir, "profiles", ".txt");
        while (reader_next(&r, '|')) {
                struct gen_call *c = &t->calls[t->n_calls];

                need_fields(&r, 6);
                if (find_call(t, r.field[0]))
                        GEN_DIE("profiles.txt:%u: %s is there twice", r.at, r.field[0]);
                if (++t->n_calls > GEN_CALLS)
                        GEN_DIE("too many calls");
                c->nr = -1;
                copy(c->name, GEN_NAME, r.field[0]);
                copy(c->reason, GEN_TEXT, r.field[5]);
                for (unsigned p = 0; p < GEN_PROFILES; p++) {
                        const struct gen_line *lines[GEN_LINES];
                        const char *s = p && str_eq(r.field[1 + p], "=") ? r.field[1] : r.field[1 + p];

                        c->answers[p] = read_answer(&r, s);
                        if (c->answers[p].kind == GEN_RULE)
                                (void) gen_rule_lines(t, c->answers[p].name, lines);
                }
        }
}

/* Every row must be a call of some architecture, or a typing error would silently refuse the call that was meant. */
static void read_numbers(struct gen_table *t, const char *dir) {
        static const char *const archs[] = { "x86_64", "aarch64" };
        bool known[GEN_CALLS] = { false };
        struct reader r;
        char name[64];

        for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
                (void) snprintf(name, sizeof(name), "syscalls-%s", archs[i]);
                reader_open(&r, dir, name, ".txt");
                while (reader_next(&r, ' ')) {
                        struct gen_call *c = find_call(t, r.field[0]);
                        uint32_t nr;

                        need_fields(&r, 2);
                        if (!to_u32(r.field[1], &nr) || nr > 1023)
                                GEN_DIE("%s:%u: bad number", name, r.at);
                        if (!c)
                                GEN_DIE("%s (%s) has no row in profiles.txt", r.field[0], name);
                        known[c - t->calls] = true;
                        if (!str_eq(archs[i], t->arch))
                                continue;
                        for (unsigned k = 0; k < t->n_calls; k++)
                                if (t->calls[k].nr == (int) nr)
                                        GEN_DIE("%s: %u is there twice", name, nr);
                        c->nr = (int) nr;
                }
        }
        for (unsigned i = 0; i < t->n_calls; i++)
                if (!known[i])
                        GEN_DIE("profiles.txt: no architecture has a call '%s'", t->calls[i].name);
}

/* The compiler's headers may be newer than our number files, or older; where they speak they must agree. */
static void check_headers(struct gen_table *t, const char *file) {
        FILE *f = fopen(file, "re");
        char text[4096];
        unsigned seen = 0;

        if (!f)
                GEN_DIE("%s: %s", file, strerrorname_np(errno));
        while (fgets(text, sizeof(text), f)) {
                char *name = text + strlen("#define __NR_"), *number;
                const struct gen_call *c;
                uint32_t nr;

                if (!str_has_prefix(text, "#define __NR_"))
                        continue;
                number = strchr(name, ' ');
                if (!number)
                        continue;
                *number++ = '\0';
                number = trim(number);
                if (str_eq(name, "syscalls") || str_eq(name, "arch_specific_syscall"))
                        continue;
                c = find_call(t, name);
                if (!c || c->nr < 0)
                        GEN_DIE("<asm/unistd.h> has %s, which is not in syscalls-%s.txt", name, t->arch);
                /* aarch64 defines some by way of __NR3264_ names; their numbers are then only in our file. */
                if (to_u32(number, &nr) && (int) nr != c->nr)
                        GEN_DIE("%s is %u in <asm/unistd.h>, %d in our file", name, nr, c->nr);
                seen++;
        }
        (void) fclose(f);
        if (seen < 250)
                GEN_DIE("%s: only %u calls, not the output of cc -E -dM", file, seen);
}

static int by_number(const void *a, const void *b) {
        const struct gen_call *x = a, *y = b;

        return (x->nr < 0) != (y->nr < 0) ? (x->nr < 0) - (y->nr < 0) : x->nr - y->nr;
}

unsigned gen_rule_lines(const struct gen_table *t, const char *rule, const struct gen_line *ret[GEN_LINES]) {
        unsigned n = 0;

        for (unsigned i = 0; i < t->n_lines; i++)
                if (str_eq(t->lines[i].rule, rule))
                        ret[n++] = &t->lines[i];
        if (n == 0 || ret[n - 1]->n != 0)
                GEN_DIE("rule '%s' is missing or has no else", rule);
        return n;
}

uint32_t gen_ret(const struct gen_answer *a) {
        if (a->kind == GEN_ALLOW)
                return 0x7fff0000;
        if (a->kind == GEN_NOTIFY)
                return 0x7fc00000;
        return 0x00050000 | (uint32_t) a->code;
}

void gen_read(struct gen_table *t, const char *dir, const char *arch, const char *headers) {
        t->arch = arch;
        t->audit_arch = str_eq(arch, "x86_64") ? 0xc000003e : 0xc00000b7;
        if (!str_eq(arch, "x86_64") && !str_eq(arch, "aarch64"))
                GEN_DIE("no tables for architecture '%s'", arch);
        read_values(dir);
        read_rules(t, dir);
        read_profiles(t, dir);
        read_numbers(t, dir);
        if (!str_eq(headers, "-"))
                check_headers(t, headers);
        qsort(t->calls, t->n_calls, sizeof(t->calls[0]), by_number);
        while (t->n_native < t->n_calls && t->calls[t->n_native].nr >= 0)
                t->n_native++;
}
