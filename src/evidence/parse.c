/* parse.c - the two texts of procfs that need more than a comparison. Pure; the kernel and the sandbox both feed it. */
#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "evidence/evidence.h"

const char *evidence_after(const char *at, char separator) {
        const char *found = strchr(at, separator);

        return found ? found + 1 : NULL;
}

const char *evidence_past(const char *at, const char *prefix) {
        while (*prefix && *at == *prefix) {
                at++;
                prefix++;
        }
        return *prefix ? NULL : at;
}

static bool hex(const char **at, uint64_t *ret) {
        uint64_t v = 0;
        unsigned n = 0;

        for (; n < 16; n++, (*at)++) {
                char c = **at;

                if (c >= '0' && c <= '9')
                        v = v << 4 | (uint64_t) (c - '0');
                else if (c >= 'a' && c <= 'f')
                        v = v << 4 | (uint64_t) (c - 'a' + 10);
                else
                        break;
        }
        *ret = v;
        return n > 0;
}

static bool decimal(const char **at, uint64_t *ret) {
        uint64_t v = 0;
        unsigned n = 0;

        for (; n < 10 && **at >= '0' && **at <= '9'; n++, (*at)++)
                v = v * 10 + (uint64_t) (**at - '0');
        *ret = v;
        return n > 0;
}

static bool four(const char *at, uint64_t ret[4]) {
        for (unsigned i = 0; i < 4; i++) {
                while (*at == '\t' || *at == ' ')
                        at++;
                if (!decimal(&at, &ret[i]) || !strchr("\t \n", *at))
                        return false;
        }
        return *at == '\n' || *at == '\0';
}

static bool one(const char *at, bool is_hex, uint64_t *ret) {
        while (*at == '\t' || *at == ' ')
                at++;
        return (is_hex ? hex(&at, ret) : decimal(&at, ret)) && (*at == '\n' || *at == '\0');
}

int evidence_parse_status(const char *text, struct evidence_status *ret) {
        enum kind { HEX, DEC, FOUR, GROUPS };
        struct evidence_status s = { 0 };
        const struct {
                const char *key;
                enum kind kind;
                uint64_t *to;
        } lines[] = {
                { "Uid:", FOUR, s.uid },
                { "Gid:", FOUR, s.gid },
                { "Groups:", GROUPS, NULL },
                { "CapInh:", HEX, &s.inheritable },
                { "CapPrm:", HEX, &s.permitted },
                { "CapEff:", HEX, &s.effective },
                { "CapBnd:", HEX, &s.bounding },
                { "CapAmb:", HEX, &s.ambient },
                { "NoNewPrivs:", DEC, &s.no_new_privs },
                { "Seccomp:", DEC, &s.seccomp },
                { "Seccomp_filters:", DEC, &s.seccomp_filters },
        };

        for (const char *line = text; line && *line; line = evidence_after(line, '\n'))
                for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                        const char *value = evidence_past(line, lines[i].key);
                        bool ok = true;

                        if (!value)
                                continue;
                        if (s.seen & BIT(i)) /* a second line of the same name is somebody's trick */
                                return -EBADMSG;
                        if (lines[i].kind == GROUPS)
                                s.has_groups = value[strspn(value, " \t")] != '\n' && *value != '\0';
                        else if (lines[i].kind == FOUR)
                                ok = four(value, lines[i].to);
                        else
                                ok = one(value, lines[i].kind == HEX, lines[i].to);
                        if (!ok)
                                return -EBADMSG;
                        s.seen |= BIT(i);
                }
        if (s.seen != BIT(ARRAY_SIZE(lines)) - 1)
                return -EBADMSG;
        *ret = s;
        return 0;
}

/* Cuts the next blank-separated word off *at. */
static char *word(char **at) {
        char *start = *at, *end;

        if (!start || !*start)
                return NULL;
        end = strchr(start, ' ');
        if (end)
                *end = '\0';
        *at = end ? end + 1 : NULL;
        return start;
}

/* mountinfo writes blanks, tabs, newlines and backslashes of a path as \\ooo; undone in place. */
static char *unescape(char *s) {
        char *to = s;

        for (const char *from = s; from && *from; to++) {
                unsigned v = 0, n = 0;

                while (*from == '\\' && n < 3 && from[n + 1] >= '0' && from[n + 1] <= '7')
                        v = v << 3 | (unsigned) (from[++n] - '0');
                *to = n == 3 ? (char) v : *from;
                from += n == 3 ? 4 : 1;
        }
        if (s)
                *to = '\0';
        return s;
}

int evidence_parse_mounts(char *text, struct evidence_mount *ret, size_t cap) {
        size_t n = 0;

        for (char *line = text, *next; line && *line; line = next) {
                struct evidence_mount m = { 0 };
                char *w;

                next = strchr(line, '\n');
                if (next)
                        *next++ = '\0';
                /* id, parent, major:minor, root, target, options, tags..., "-", type, source, super options */
                for (unsigned i = 0; i < 3; i++)
                        if (!word(&line))
                                return -EBADMSG;
                m.root = unescape(word(&line));
                m.target = unescape(word(&line));
                m.options = word(&line);
                while ((w = word(&line)) && strcmp(w, "-") != 0)
                        m.propagates |= strncmp(w, "shared:", 7) == 0 || strncmp(w, "master:", 7) == 0;
                m.fstype = w ? word(&line) : NULL;
                m.source = m.fstype ? word(&line) : NULL;
                m.super = m.source ? word(&line) : NULL;
                if (!m.super)
                        return -EBADMSG;
                if (n == cap)
                        return -E2BIG;
                ret[n++] = m;
        }
        return (int) n;
}
