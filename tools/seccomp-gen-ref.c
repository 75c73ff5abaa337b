/*
 * seccomp-gen-ref.c - the same tables through libseccomp, as a second opinion for the tests. Not part of the product.
 *
 *   seccomp-ref TABLE-DIR ARCH UNISTD-MACROS OUTPUT
 *
 * libseccomp promises no order among the rules of one call and swallows rules that a shorter one covers, so every
 * path of a rule is written out with a comparison for each argument: an equality, or the always true `>= 0` where
 * the path says "anything else". libseccomp tries equalities first; the tests prove it for each program.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <seccomp.h>

#include "base/own.h"
#include "seccomp-gen.h"

struct path {
        scmp_filter_ctx ctx;
        int nr;
        struct scmp_arg_cmp cmp[GEN_CONDS];
        unsigned n;
};

static void add(const struct path *p, const struct gen_answer *a) {
        int r;

        if (a->kind == GEN_ERRNO && a->code == ENOSYS)
                return; /* the default; libseccomp refuses to be told it again */
        r = seccomp_rule_add_array(p->ctx, gen_ret(a), p->nr, p->n, p->cmp);
        if (r < 0)
                GEN_DIE("libseccomp: call %d: %s", p->nr, strerrorname_np(-r));
}

static const struct gen_cond *find_cond(const struct gen_line *l, unsigned arg) {
        for (unsigned i = 0; i < l->n; i++)
                if (l->conds[i].arg == arg)
                        return &l->conds[i];
        return NULL;
}

static bool holds(const struct gen_line *l, unsigned arg, uint32_t v) {
        const struct gen_cond *c = find_cond(l, arg);

        for (unsigned i = 0; c && i < c->n; i++)
                if (c->set[i] == v)
                        return true;
        return !c;
}

static bool seen_before(const struct gen_line *const *lines, unsigned line, unsigned nth, unsigned arg) {
        const struct gen_cond *now = find_cond(lines[line], arg);

        for (unsigned i = 0; i <= line; i++) {
                const struct gen_cond *c = find_cond(lines[i], arg);

                for (unsigned k = 0; c && k < c->n && !(i == line && k == nth); k++)
                        if (c->set[k] == now->set[nth])
                                return true;
        }
        return false;
}

static void walk(struct path *p, const struct gen_line *const *lines, unsigned n, unsigned done) {
        const struct gen_line *sub[GEN_LINES];
        const struct gen_cond *key = NULL;
        struct scmp_arg_cmp *cmp = &p->cmp[p->n];
        unsigned m;

        if (n == 0)
                GEN_DIE("a rule without else");
        for (unsigned i = 0; i < lines[0]->n && !key; i++)
                if (!(done & BIT(lines[0]->conds[i].arg)))
                        key = &lines[0]->conds[i];
        if (!key) {
                add(p, &lines[0]->answer);
                return;
        }
        p->n++;
        for (unsigned i = 0; i < n; i++) {
                const struct gen_cond *c = find_cond(lines[i], key->arg);

                for (unsigned k = 0; c && k < c->n; k++) {
                        if (seen_before(lines, i, k, key->arg))
                                continue;
                        *cmp = (struct scmp_arg_cmp){ key->arg, SCMP_CMP_MASKED_EQ, key->mask, c->set[k] };
                        m = 0;
                        for (unsigned j = 0; j < n; j++)
                                if (holds(lines[j], key->arg, c->set[k]))
                                        sub[m++] = lines[j];
                        walk(p, sub, m, done | BIT(key->arg));
                }
        }
        m = 0;
        for (unsigned j = 0; j < n; j++)
                if (!find_cond(lines[j], key->arg))
                        sub[m++] = lines[j];
        *cmp = (struct scmp_arg_cmp){ key->arg, SCMP_CMP_GE, 0, 0 };
        walk(p, sub, m, done | BIT(key->arg));
        p->n--;
}

static void export_to(scmp_filter_ctx ctx, struct gen_program *ret) {
        AUTO_FD int fd = memfd_create("bpf", MFD_CLOEXEC);
        ssize_t n;

        if (fd < 0 || seccomp_export_bpf(ctx, fd) < 0)
                GEN_DIE("libseccomp: export");
        n = pread(fd, ret->insns, sizeof(ret->insns), 0);
        if (n <= 0 || n % (ssize_t) sizeof(ret->insns[0]))
                GEN_DIE("libseccomp: odd program");
        ret->n = (unsigned) ((size_t) n / sizeof(ret->insns[0]));
}

static void reference(const struct gen_table *t, unsigned profile, struct gen_program *ret) {
        struct path p = { .n = 0 };

        (void) seccomp_api_set(6); /* what the target's kernel can do, not the build machine's */
        p.ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
        if (!p.ctx || seccomp_attr_set(p.ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0 ||
            seccomp_attr_set(p.ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) < 0)
                GEN_DIE("libseccomp: init");
        for (unsigned i = 0; i < t->n_native; i++) {
                const struct gen_answer *a = &t->calls[i].answers[profile];
                const struct gen_line *lines[GEN_LINES];

                p.nr = t->calls[i].nr;
                if (a->kind == GEN_RULE)
                        walk(&p, lines, gen_rule_lines(t, a->name, lines), 0);
                else
                        add(&p, a);
        }
        export_to(p.ctx, ret);
        seccomp_release(p.ctx);
}

int main(int argc, char **argv) {
        static struct gen_table table;
        static struct gen_program program;
        FILE *f;

        if (argc != 5)
                GEN_DIE("usage: seccomp-ref TABLE-DIR ARCH UNISTD-MACROS OUTPUT");
        gen_read(&table, argv[1], argv[2], argv[3]);
        f = gen_create(argv[4]);
        (void) fputs("#include \"reference.h\"\n\n#include \"base/own.h\"\n#include \"base/sys.h\"\n\n", f);
        for (unsigned p = 0; p < GEN_PROFILES; p++) {
                reference(&table, p, &program);
                gen_write_insns(f, gen_profile(p), &program);
        }
        (void) fputs("const struct sys_bpf_insn *reference_program(unsigned profile, size_t *ret_n) {\n"
                     "        static const struct {\n"
                     "                const struct sys_bpf_insn *insns;\n"
                     "                size_t n;\n"
                     "        } all[] = {\n",
                     f);
        for (unsigned p = 0; p < GEN_PROFILES; p++)
                (void) fprintf(f, "                { %s_insns, ARRAY_SIZE(%s_insns) },\n", gen_profile(p),
                               gen_profile(p));
        (void) fputs("        };\n\n        *ret_n = all[profile].n;\n        return all[profile].insns;\n}\n", f);
        gen_close(f, argv[4]);
        return 0;
}
