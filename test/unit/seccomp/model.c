/* model.c - see model.h. */
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"

enum { ROWS = 512, TEXT = 65536 };

struct rule_line {
        const char *rule, *answer;
        struct {
                unsigned arg;
                uint32_t mask, set[8];
                unsigned n;
        } when[3];
        unsigned n;
};

struct model {
        bool x86;
        char text[4][TEXT]; /* the files, cut into strings in place */
        struct {
                const char *name;
                uint32_t v;
        } values[ROWS];
        size_t n_values;
        struct rule_line lines[ROWS];
        size_t n_lines;
        const char *names[MODEL_NR];      /* by number */
        const char *answers[3][MODEL_NR]; /* as written in the table */
};

static void must(bool ok) {
        if (!ok)
                abort();
}

/* Cuts off and returns the part before sep, without the blanks around it; NULL at the end. */
static char *part(char **rest, const char *sep) {
        char *s = *rest, *end;

        if (!s)
                return NULL;
        *rest = strpbrk(s, sep);
        if (*rest)
                *(*rest)++ = '\0';
        while (*s == ' ')
                s++;
        for (end = s + strlen(s); end > s && end[-1] == ' ';)
                *--end = '\0';
        return s;
}

static char *row(char **rest) {
        char *s;

        do
                s = part(rest, "\n");
        while (s && (!*s || *s == '#'));
        return s;
}

static char *load(struct model *m, unsigned slot, const char *dir, const char *name) {
        char path[4096];

        (void) snprintf(path, sizeof(path), "%s/%s.txt", dir, name);
        must(fd_read_at(AT_FDCWD, path, m->text[slot], TEXT) > 0);
        return m->text[slot];
}

static uint32_t number(const struct model *m, const char *s) {
        uint64_t v = 0;

        for (size_t i = 0; i < m->n_values; i++)
                if (str_eq(m->values[i].name, s))
                        return m->values[i].v;
        if (!str_has_prefix(s, "0x")) {
                must(str_to_u64(s, UINT32_MAX, &v) == 0);
                return (uint32_t) v;
        }
        for (s += 2; *s; s++)
                v = v * 16 + (uint64_t) (*s >= 'a' ? *s - 'a' + 10 : *s - '0');
        return (uint32_t) v;
}

static void load_values(struct model *m, const char *dir) {
        char *rest = load(m, 0, dir, "values"), *s;

        while ((s = row(&rest))) {
                const char *name = part(&s, " ");

                must(s && m->n_values < ROWS);
                m->values[m->n_values].v = number(m, part(&s, " "));
                m->values[m->n_values++].name = name;
        }
}

static void load_rules(struct model *m, const char *dir) {
        char *rest = load(m, 1, dir, "rules"), *s;

        while ((s = row(&rest))) {
                struct rule_line *l = &m->lines[m->n_lines++];
                char *when, *cond;

                must(m->n_lines < ROWS);
                l->rule = part(&s, "|");
                when = part(&s, "|");
                l->answer = part(&s, "|");
                must(l->answer != NULL);
                if (str_eq(when, "else"))
                        continue;
                while ((cond = part(&when, " "))) {
                        char *left = part(&cond, "="), *v;
                        unsigned arg = (unsigned) left[1] - '0';

                        must(left[0] == 'a' && arg < 6 && cond && l->n < 3);
                        l->when[l->n].arg = arg;
                        l->when[l->n].mask = left[2] == '&' ? number(m, left + 3) : UINT32_MAX;
                        while ((v = part(&cond, ",")))
                                l->when[l->n].set[l->when[l->n].n++] = number(m, v);
                        l->n++;
                }
        }
}

static void load_calls(struct model *m, const char *dir, const char *arch) {
        char name[64], *rest, *s;

        (void) snprintf(name, sizeof(name), "syscalls-%s", arch);
        for (rest = load(m, 2, dir, name); (s = row(&rest));) {
                const char *call = part(&s, " ");
                uint32_t nr = number(m, part(&s, " "));

                must(nr < MODEL_NR && !m->names[nr]);
                m->names[nr] = call;
        }
        for (rest = load(m, 3, dir, "profiles"); (s = row(&rest));) {
                int nr = model_nr(m, part(&s, "|"));

                for (unsigned p = 0; p < 3 && nr >= 0; p++) {
                        const char *a = part(&s, "|");

                        m->answers[p][nr] = str_eq(a, "=") ? m->answers[0][nr] : a;
                }
        }
        for (unsigned nr = 0; nr < MODEL_NR; nr++)
                must(!m->names[nr] == !m->answers[0][nr]);
}

struct model *model_new(const char *dir, const char *arch) {
        struct model *m = calloc(1, sizeof(*m));

        must(m != NULL);
        m->x86 = str_eq(arch, "x86_64");
        load_values(m, dir);
        load_rules(m, dir);
        load_calls(m, dir, arch);
        return m;
}

struct model *model_free(struct model *m) {
        free(m);
        return NULL;
}

uint32_t model_arch(const struct model *m) {
        return m->x86 ? 0xc000003e : 0xc00000b7;
}

static bool line_holds(const struct rule_line *l, const uint64_t args[6]) {
        for (unsigned i = 0; i < l->n; i++) {
                uint32_t v = (uint32_t) args[l->when[i].arg] & l->when[i].mask;
                bool any = false;

                for (unsigned k = 0; k < l->when[i].n; k++)
                        any |= v == l->when[i].set[k];
                if (!any)
                        return false;
        }
        return true;
}

static int errno_named(const char *name) {
        for (int e = 1; e < 134; e++)
                if (strerrorname_np(e) && str_eq(strerrorname_np(e), name))
                        return e;
        /* The C library knows this number by its other name. */
        must(str_eq(name, "EOPNOTSUPP"));
        return EOPNOTSUPP;
}

uint32_t model_answer(const struct model *m, unsigned profile, const struct sim_data *d, int *ret_errno) {
        const char *a = NULL;

        *ret_errno = 0;
        if (d->arch != model_arch(m) || (m->x86 && (uint32_t) d->nr >= 0x40000000 && d->nr != -1))
                return MODEL_KILL;
        if (d->nr >= 0 && d->nr < MODEL_NR)
                a = m->answers[profile][d->nr];
        if (!a)
                return MODEL_ERRNO | ENOSYS;
        if (str_has_prefix(a, "rule ")) {
                const char *rule = a + 5;

                a = NULL;
                for (size_t i = 0; i < m->n_lines && !a; i++)
                        if (str_eq(m->lines[i].rule, rule) && line_holds(&m->lines[i], d->args))
                                a = m->lines[i].answer;
                must(a != NULL);
        }
        if (str_eq(a, "allow"))
                return MODEL_ALLOW;
        if (!str_has_prefix(a, "notify "))
                return MODEL_ERRNO | (uint32_t) errno_named(a);
        *ret_errno = errno_named(a + 7);
        return MODEL_NOTIFY;
}

bool model_has_rule(const struct model *m, unsigned profile, int nr) {
        const char *a = nr >= 0 && nr < MODEL_NR ? m->answers[profile][nr] : NULL;

        return a && str_has_prefix(a, "rule ");
}

int model_nr(const struct model *m, const char *name) {
        for (int nr = 0; nr < MODEL_NR; nr++)
                if (m->names[nr] && str_eq(m->names[nr], name))
                        return nr;
        return -1;
}

bool model_value(const struct model *m, size_t i, const char **ret_name, uint32_t *ret) {
        if (i >= m->n_values)
                return false;
        *ret_name = m->values[i].name;
        *ret = m->values[i].v;
        return true;
}
