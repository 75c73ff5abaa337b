/* parse.c - the probe's lines. They come from inside a sandbox, so every byte is checked; nothing is guessed. */
#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "prove/names.h"
#include "prove/prove.h"

enum { FIELDS = 8, ID_MAX = 8, MS_MAX = 3600000 };

/* The verdict of a line that only says what comes next. It is as long as "stopped", see prove_died(). */
static const char started[] = "started";

const char *const prove_severity_names[PROVE_SEVERITIES] = { "crit", "high", "med", "low", "control" };
const char *const prove_verdict_names[4] = { "stopped", "reached", "absent", "accepted" };
const char *const prove_group_names[PROVE_GROUPS] = {
        "capabilities and regaining privilege",
        "new namespaces",
        "system calls",
        "socket families",
        "/proc and /sys",
        "devices",
        "files and descriptors",
        "network",
        "using up the machine",
        "information",
};

const char *const prove_ns_names[PROVE_NS] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup", "time" };

static int name_index(const char *const *names, size_t n, const char *s) {
        for (size_t i = 0; i < n; i++)
                if (str_eq(names[i], s))
                        return (int) i;
        return -EBADMSG;
}

static bool is_id(const char *s) {
        size_t n = strlen(s);

        return n >= 3 && n <= ID_MAX && s[0] >= 'A' && s[0] <= 'J' &&
               strspn(s + 1, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == n - 1;
}

static bool is_plain(const char *s) {
        for (; *s; s++)
                if ((unsigned char) *s < 0x20 || (unsigned char) *s > 0x7e)
                        return false;
        return true;
}

/* 1: it only says what comes next. */
static int parse_line(char *line, struct prove_attempt *ret) {
        char *f[FIELDS];
        uint64_t err_no, ms;
        int severity, verdict;

        for (size_t i = 0; i < FIELDS; i++) {
                char *tab = line ? strchr(line, '\t') : NULL;

                if (!line || (i < FIELDS - 1) != (tab != NULL))
                        return -EBADMSG;
                f[i] = line;
                if (tab)
                        *tab = '\0';
                line = tab ? tab + 1 : NULL;
                if (!is_plain(f[i]))
                        return -EBADMSG;
        }
        severity = name_index(prove_severity_names, ARRAY_SIZE(prove_severity_names), f[1]);
        verdict = str_eq(f[2], started) ? 0 : name_index(prove_verdict_names, ARRAY_SIZE(prove_verdict_names), f[2]);
        if (!is_id(f[0]) || severity < 0 || verdict < 0 || str_to_u64(f[3], 4095, &err_no) < 0 ||
            str_to_u64(f[4], MS_MAX, &ms) < 0)
                return -EBADMSG;
        *ret = (struct prove_attempt){
                f[0],         f[5],         f[6], f[7], (enum prove_severity) severity, (enum prove_verdict) verdict,
                (int) err_no, (unsigned) ms
        };
        return str_eq(f[2], started);
}

int prove_parse(struct prove_report *r, size_t n) {
        char *line = r->output, *next;
        const char *next_id = NULL; /* announced, and not yet reported */
        uint64_t said;

        if (n >= sizeof(r->output) || memchr(r->output, '\0', n))
                return -EBADMSG;
        r->output[n] = '\0';
        r->n_attempts = 0;
        for (bool first = true; line && *line; line = next, first = false) {
                struct prove_attempt *a = &r->attempts[r->n_attempts];
                int announced;

                next = strchr(line, '\n');
                if (!next)
                        return -EBADMSG; /* cut off: the probe or the sandbox ended early */
                *next++ = '\0';
                if (first) {
                        if (!str_eq(line, "gabion-probe 1"))
                                return -EBADMSG;
                        continue;
                }
                if (str_has_prefix(line, "end "))
                        return *next == '\0' && !next_id && str_to_u64(line + 4, PROVE_ATTEMPTS, &said) == 0 &&
                                               said == r->n_attempts
                                       ? 0
                                       : -EBADMSG;
                announced = r->n_attempts == PROVE_ATTEMPTS ? -EBADMSG : parse_line(line, a);
                if (announced < 0 || (announced && next_id) || (!announced && next_id && !str_eq(next_id, a->id)))
                        return -EBADMSG;
                next_id = announced ? a->id : NULL;
                r->n_attempts += announced ? 0 : 1;
        }
        return -EBADMSG; /* no end */
}

int prove_died(char *output, size_t n, char ret_id[PROVE_ID]) {
        const char *end = memrchr(output, '\n', n);
        size_t whole = end ? (size_t) (end - output) + 1 : 0, len;
        const char *before = whole ? memrchr(output, '\n', whole - 1) : NULL;
        char *line = output + (before ? before - output + 1 : 0), *verdict;

        /* The last whole line must be an announcement: id, severity, "started". */
        len = strcspn(line, "\t\n");
        verdict = memchr(line, '\t', whole - (size_t) (line - output));
        verdict = verdict ? memchr(verdict + 1, '\t', whole - (size_t) (verdict + 1 - output)) : NULL;
        if (!verdict || len == 0 || len >= PROVE_ID || strncmp(verdict + 1, started, sizeof(started) - 1) != 0)
                return -EBADMSG;
        memcpy(ret_id, line, len);
        ret_id[len] = '\0';
        memcpy(verdict + 1, prove_verdict_names[PROVE_STOPPED], sizeof(started) - 1);
        return is_id(ret_id) ? (int) whole : -EBADMSG;
}

bool prove_is_finding(const struct prove_attempt *a) {
        return a->severity == PROVE_CONTROL ? a->verdict == PROVE_STOPPED : a->verdict == PROVE_REACHED;
}

size_t prove_count(const struct prove_report *r, enum prove_severity s, char group) {
        size_t n = 0;

        for (size_t i = 0; i < r->n_attempts; i++)
                n += r->attempts[i].severity == s && prove_is_finding(&r->attempts[i]) &&
                     (!group || r->attempts[i].id[0] == group);
        return n;
}

bool prove_passed(const struct prove_report *r) {
        for (size_t i = 0; i < r->n_checks; i++)
                if (!r->checks[i].ok)
                        return false;
        return r->n_attempts > 0 && prove_count(r, PROVE_CRIT, 0) == 0 && prove_count(r, PROVE_HIGH, 0) == 0;
}

size_t prove_verdicts(const struct prove_report *r, enum prove_verdict v, char group) {
        size_t n = 0;

        for (size_t i = 0; i < r->n_attempts; i++)
                n += r->attempts[i].verdict == v && (!group || r->attempts[i].id[0] == group);
        return n;
}

bool prove_is_tried(const struct prove_report *r, char group) {
        for (size_t i = 0; i < r->n_attempts; i++)
                if (r->attempts[i].id[0] == group)
                        return true;
        return false;
}

bool prove_is_whole(const struct prove_report *r) {
        for (size_t i = 0; i < PROVE_GROUPS; i++)
                if (!prove_is_tried(r, (char) ('A' + i)))
                        return false;
        return true;
}

bool prove_is_accepted(const struct prove_attempt *a) {
        return a->verdict == PROVE_ACCEPTED && a->severity != PROVE_CONTROL;
}

bool prove_is_any(const struct prove_attempt *a) {
        (void) a;
        return true;
}
