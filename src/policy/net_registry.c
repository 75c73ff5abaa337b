/*
 * net_registry.c - finds registries in the settings of package clients.
 *
 * All of their files are lines of a key and a value, so one bounded reader serves them; a table says what separates the
 * two, whether indented lines go on with the value before, and which keys hold URLs. Nothing is evaluated: no
 * variables, no includes. Only host and port of a URL are kept; user names and passwords in it are never shown.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "policy/net_packages.h"
#include "policy/net_rules.h"

enum { LINE = 2048, KEY = 128, NOTE = 512, HOST_SHOWN = 300, PENDING = 16 };

struct reading {
        struct policy_net *net;
        enum net_client client;
        const char *file;
        unsigned line;
        char section[KEY];
        char key[KEY];               /* of the pair that an indented line goes on with */
        char pending[PENDING][LINE]; /* deb822: values of a stanza, which may still turn out to be disabled */
        unsigned pending_line[PENDING];
        size_t n_pending;
        bool disabled, found;
};

struct format {
        const char *name;
        const char *separators; /* between key and value */
        bool continues;         /* indented lines belong to the value before */
        bool stanzas;           /* a blank line ends what belongs together */
        bool (*has_urls)(const char *section, const char *key);
};

/* --- which keys hold URLs --- */

static bool ends_with(const char *s, const char *tail) {
        size_t n = strlen(s), k = strlen(tail);

        return n >= k && str_eq(s + n - k, tail);
}

static bool apt_list(const char *section, const char *key) {
        (void) section;
        return str_eq(key, "deb") || str_eq(key, "deb-src");
}

static bool apt_sources(const char *section, const char *key) {
        (void) section;
        return strcasecmp(key, "uris") == 0;
}

static bool pip(const char *section, const char *key) {
        (void) section;
        return str_eq(key, "index-url") || str_eq(key, "index_url") || str_eq(key, "extra-index-url") ||
               str_eq(key, "extra_index_url");
}

static bool npm(const char *section, const char *key) {
        (void) section;
        return str_eq(key, "registry") || (*key == '@' && ends_with(key, ":registry"));
}

static bool go(const char *section, const char *key) {
        (void) section;
        return str_eq(key, "GOPROXY");
}

static bool cargo(const char *section, const char *key) {
        char full[2 * KEY];

        (void) snprintf(full, sizeof(full), "%s%s%s", section, *section ? "." : "", key);
        return (str_has_prefix(full, "registries.") && ends_with(full, ".index")) ||
               (str_has_prefix(full, "source.") && ends_with(full, ".registry"));
}

static const struct format formats[NET_CLIENTS] = {
        [NET_APT_LIST] = { "apt", " \t", false, false, apt_list },
        [NET_APT_SOURCES] = { "apt", ":", true, true, apt_sources },
        [NET_PIP] = { "pip", "=:", true, false, pip },
        [NET_NPM] = { "npm", "=", false, false, npm },
        [NET_GO] = { "go", "=", false, false, go },
        [NET_CARGO] = { "cargo", "=", false, false, cargo },
};

const char *net_client_name(enum net_client client) {
        return client < NET_CLIENTS ? formats[client].name : "?";
}

/* --- one URL --- */

static int note(struct reading *r, unsigned line, const char *what) {
        char text[NOTE];

        if (line > 0)
                (void) snprintf(text, sizeof(text), "%s: %.300s:%u: %s", formats[r->client].name, r->file, line, what);
        else
                (void) snprintf(text, sizeof(text), "%s: %.300s: %s", formats[r->client].name, r->file, what);
        for (size_t i = 0; i < r->net->n_notes; i++)
                if (str_eq(r->net->notes[i], text))
                        return 0;
        return net_note(r->net, text);
}

/* Host and port of "SCHEME://[USER@]HOST[:PORT][/...]". -EINVAL: not such a URL. */
static int url_split(const char *url, char host[HOST_SHOWN], char port[8]) {
        bool secure;
        const char *p = url, *at, *colon, *end;
        size_t n;

        if (str_has_prefix(p, "sparse+") || str_has_prefix(p, "registry+"))
                p = strchr(p, '+') + 1;
        secure = strncasecmp(p, "https://", 8) == 0;
        if (!secure && strncasecmp(p, "http://", 7) != 0)
                return -EINVAL;
        p = strstr(p, "://") + 3;
        end = p + strcspn(p, "/?#");
        for (at = p; at < end; at++)
                if (*at == '@')
                        p = at + 1;
        if (*p == '[') {
                at = memchr(p, ']', (size_t) (end - p));
                colon = at && at[1] == ':' ? at + 1 : NULL;
                n = at ? (size_t) (at - p - 1) : 0;
                p++;
        } else {
                colon = memchr(p, ':', (size_t) (end - p));
                n = (size_t) ((colon ? colon : end) - p);
        }
        if (n == 0 || n >= HOST_SHOWN || (colon && (colon + 1 == end || end - colon > 6)))
                return -EINVAL;
        memcpy(host, p, n);
        host[n] = '\0';
        (void) snprintf(port, 8, "%.*s", colon ? (int) (end - colon - 1) : 3,
                        colon    ? colon + 1
                        : secure ? "443"
                                 : "80");
        return 0;
}

static bool same_rule(const struct net_rule *a, const struct net_rule *b) {
        char x[HOST_NAME + 4], y[HOST_NAME + 4];

        if (a->n_ports != b->n_ports || memcmp(a->ports, b->ports, a->n_ports * sizeof(a->ports[0])) != 0 ||
            net_rule_wants_http(a) || net_rule_wants_http(b))
                return false;
        net_rule_text(a, x);
        net_rule_text(b, y);
        return str_eq(x, y);
}

static void rule_donep(struct net_rule *r) {
        net_rule_done(r);
}

/* What is not a URL of a host is left out, with a note. */
static int add_url(struct reading *r, unsigned line, const char *url, struct err *err) {
        CLEANUP(rule_donep) struct net_rule rule = { 0 };
        char host[HOST_SHOWN], port[8], what[HOST_SHOWN + 16];
        struct addr_cidr cidr;
        struct err why;
        int k;

        k = url_split(url, host, port);
        if (k == 0)
                k = addr_cidr_parse(host, &cidr) == 0 ? net_rule_cidr(&rule, host, &why)
                                                      : net_rule_host(&rule, host, &why);
        if (k == 0 && rule.kind != NET_CIDR && rule.kind != NET_EXACT)
                k = -EINVAL; /* a star would be a wish of whoever wrote the file */
        if (k == 0)
                k = net_port(port, &(uint16_t){ 0 }); /* one port, not a range */
        if (k == 0)
                k = net_rule_port(&rule, port, &why);
        if (k < 0)
                return note(r, line, "left out: not an http or https URL of a host") < 0
                               ? err_set(err, -ENOMEM, ERR_INTERNAL, "preset packages")
                               : 0;
        for (size_t i = 0; i < r->net->allow.n; i++)
                if (same_rule(&r->net->allow.at[i], &rule))
                        return 0;
        net_rule_text(&rule, host);
        (void) snprintf(what, sizeof(what), "%s, port %s", host, port);
        if (note(r, line, what) < 0)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "preset packages");
        return net_add(r->net, true, &rule, err);
}

static bool is_url(const char *word) {
        return strstr(word, "://");
}

/* Every URL in a value: words in quotes, brackets, and between blanks, commas and bars. Other words (suites, "direct")
 * are not about hosts. */
static int add_value(struct reading *r, unsigned line, const char *value, struct err *err) {
        static const char between[] = " \t,|\"'";

        r->found = true;
        while (*value) {
                size_t n = strcspn(value, between);
                char word[LINE];
                int k = 0;

                (void) snprintf(word, sizeof(word), "%.*s", (int) (n < LINE ? n : LINE - 1), value);
                if (is_url(word))
                        k = add_url(r, line, word, err);
                if (k < 0)
                        return k;
                value += n + strspn(value + n, between);
        }
        return 0;
}

/* --- lines --- */

static int flush(struct reading *r, struct err *err) {
        int k = 0;

        for (size_t i = 0; k == 0 && i < r->n_pending && !r->disabled; i++)
                k = add_value(r, r->pending_line[i], r->pending[i], err);
        r->n_pending = 0;
        r->disabled = false;
        r->key[0] = '\0';
        return k;
}

static int pair(struct reading *r, const struct format *f, const char *value, struct err *err) {
        if (f->stanzas && strcasecmp(r->key, "enabled") == 0)
                r->disabled = str_eq(value, "no") || str_eq(value, "false") || str_eq(value, "0");
        if (!f->has_urls(r->section, r->key))
                return 0;
        if (!f->stanzas)
                return add_value(r, r->line, value, err);
        if (r->n_pending == PENDING)
                return err_set(err, -E2BIG, ERR_LIMIT, "%.200s:%u: more than %d lines of URIs", r->file, r->line,
                               PENDING);
        (void) str_copy(r->pending[r->n_pending], LINE, value);
        r->pending_line[r->n_pending++] = r->line;
        return 0;
}

/* Cuts what stands behind a comment sign, so that nobody is allowed by a remark, and blanks at the end. */
static void trim(char *s) {
        size_t n = 0;

        while (s[n] && !(n > 0 && strchr(" \t", s[n - 1]) && strchr("#;", s[n])))
                n++;
        s[n] = '\0';
        while (n > 0 && strchr(" \t\r", s[n - 1]))
                s[--n] = '\0';
}

static int feed(struct reading *r, char *line, struct err *err) {
        const struct format *f = &formats[r->client];
        size_t indent = strspn(line, " \t"), n;
        char *s = line + indent;

        trim(s);
        if (!*s)
                return f->stanzas ? flush(r, err) : 0;
        if (*s == '#' || *s == ';')
                return 0;
        if (*s == '[') {
                (void) snprintf(r->section, sizeof(r->section), "%.*s", (int) strcspn(s + 1, "]"), s + 1);
                return 0;
        }
        if (indent > 0 && f->continues)
                return *r->key ? pair(r, f, s, err) : 0;
        n = strcspn(s, f->separators);
        (void) snprintf(r->key, sizeof(r->key), "%.*s", (int) (s[n] && n < KEY ? n : 0), s);
        if (!*r->key)
                return 0;
        trim(r->key);
        s += n + 1;
        return pair(r, f, s + strspn(s, " \t"), err);
}

int net_packages_text(struct policy_net *net, enum net_client client, const char *file, const char *text,
                      struct err *err) {
        AUTO_FREE struct reading *r = calloc(1, sizeof(*r));
        int k = 0;

        if (!r)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "preset packages");
        *r = (struct reading){ .net = net, .client = client, .file = file };
        while (k == 0 && *text) {
                size_t n = strcspn(text, "\n");
                char line[LINE];

                r->line++;
                if (n >= sizeof(line))
                        return err_set(err, -E2BIG, ERR_LIMIT, "%.200s:%u: the line is too long", file, r->line);
                memcpy(line, text, n);
                line[n] = '\0';
                k = feed(r, line, err);
                text += n + (text[n] == '\n');
        }
        if (k == 0)
                k = flush(r, err);
        return k < 0 ? k : r->found ? 0 : -ENOENT;
}

int net_packages_value(struct policy_net *net, enum net_client client, const char *where, const char *value,
                       struct err *err) {
        AUTO_FREE struct reading *r = calloc(1, sizeof(*r));
        int k;

        if (!r)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "preset packages");
        *r = (struct reading){ .net = net, .client = client, .file = where };
        k = add_value(r, 0, value, err);
        return k < 0 ? k : r->found ? 0 : -ENOENT;
}
