/* remote.c - what all sub-commands against a server share: options, help, where the server is, and small output. */
#include "cli/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "json/json.h"

enum { OPTIONS = 24, LETTERS = 64, SECONDS_MAX = 365 * 86400 };

static const char default_server[] = "http://127.0.0.1:3000";

static void help_rows(const struct remote_option *o, size_t n) {
        for (size_t i = 0; i < n; i++) {
                char letter[8] = "    ", left[64];

                if (o[i].key < 256)
                        (void) snprintf(letter, sizeof(letter), "-%c, ", o[i].key);
                (void) snprintf(left, sizeof(left), "%s--%s%s%s", letter, o[i].name, o[i].value ? " " : "",
                                o[i].value ? o[i].value : "");
                (void) printf("  %-30s %s\n", left, o[i].what);
        }
}

static int help(const struct remote_verb *v) {
        (void) printf("Usage: gabion %s %s\n\n%s\n\n", v->name, v->usage, v->intro);
        help_rows(v->options, v->n_options);
        help_rows(remote_usual, remote_n_usual);
        if (*v->more)
                (void) printf("\n%s", v->more);
        return 0;
}

static size_t add_options(struct option *to, size_t at, char *letters, const struct remote_option *o, size_t n) {
        for (size_t i = 0; i < n && at < OPTIONS - 1; i++) {
                size_t len = strlen(letters);

                to[at++] = (struct option){ o[i].name, o[i].value ? required_argument : no_argument, NULL, o[i].key };
                if (o[i].key < 256)
                        (void) snprintf(letters + len, LETTERS - len, "%c%s", o[i].key, o[i].value ? ":" : "");
        }
        return at;
}

/* -1: go on. */
static int set_usual(struct remote *r, int key) {
        switch (key) {
        case REMOTE_SERVER:
                r->server = optarg;
                return -1;
        case REMOTE_KEY_FILE:
                r->key_file = optarg;
                return -1;
        case REMOTE_CA_FILE:
                r->ca_file = optarg;
                return -1;
        case REMOTE_JSON:
                r->json = true;
                return -1;
        default:
                return help(r->verb);
        }
}

static bool is_own(const struct remote_verb *v, int key) {
        for (size_t i = 0; i < v->n_options; i++)
                if (v->options[i].key == key)
                        return key != REMOTE_JSON;
        return false;
}

static int read_options(struct remote *r, bool mixed, int argc, char **argv, int *at,
                        int (*set)(void *into, int key, const char *value), void *into) {
        struct option table[OPTIONS] = { 0 };
        char letters[LETTERS];
        size_t n;
        int key, code;

        (void) str_copy(letters, sizeof(letters), mixed ? ":" : "+:");
        n = add_options(table, 0, letters, r->verb->options, r->verb->n_options);
        (void) add_options(table, n, letters, remote_usual, remote_n_usual);
        opterr = 0;
        optind = 0; /* begins anew */
        while ((key = getopt_long(argc - *at, argv + *at, letters, table, NULL)) != -1) {
                const char *word = argv[*at + (optind > 0 ? optind - 1 : 0)];

                if (key == '?')
                        return cli_usage(r->verb->name, "'%.40s' is no option of %s", word, r->verb->name);
                if (key == ':')
                        return cli_usage(r->verb->name, "'%.40s' needs a value", word);
                code = is_own(r->verb, key) && key != 'h' ? set(into, key, optarg) : set_usual(r, key);
                if (code >= 0)
                        return code;
        }
        *at += optind;
        return -1;
}

int remote_options(struct remote *r, int argc, char **argv, int *at, int (*set)(void *into, int key, const char *value),
                   void *into) {
        return read_options(r, false, argc, argv, at, set, into);
}

int remote_options_mixed(struct remote *r, int argc, char **argv, int *at,
                         int (*set)(void *into, int key, const char *value), void *into) {
        return read_options(r, true, argc, argv, at, set, into);
}

/* --- the server --- */

static const char *first_of(const char *a, const char *b, const char *c) {
        return a && *a ? a : *b ? b : c;
}

static int read_key(const char *path, char dst[CLIENT_KEY_TEXT], struct err *err) {
        int n = fd_read_at(AT_FDCWD, path, dst, CLIENT_KEY_TEXT);

        if (n < 0)
                return err_set(err, n, ERR_INVALID, "--key-file %.100s: %s", path,
                               n == -EFBIG ? "is no key: too long" : strerror(-n));
        dst[strcspn(dst, "\r\n")] = '\0';
        return 0;
}

static int check_key(const char *key, struct err *err) {
        if (!*key)
                return err_set(err, -EACCES, ERR_DENIED,
                               "no API key: set GABION_API_KEY, or give --key-file (what 'gabion serve' wrote)");
        for (const char *p = key; *p; p++)
                if (*p <= ' ' || *p > '~')
                        return err_set(err, -EINVAL, ERR_INVALID, "the API key has a character that no key has");
        return 0;
}

int remote_open(struct remote *r, struct err *err) {
        const char *e2b_url = cli_env("E2B_API_URL"), *ours = cli_env("GABION_SERVER"),
                   *boxes = cli_env("E2B_SANDBOX_URL");
        const char *server = first_of(r->server, ours, first_of(e2b_url, "", default_server));
        char key[CLIENT_KEY_TEXT];
        struct client_config config = { .server = server, .key = key, .ca_file = r->ca_file };
        int n = 0;

        if (server == e2b_url && *boxes) /* the pair belongs together */
                config.sandboxes = boxes;
        if (!r->ca_file && *cli_env("GABION_CA_FILE"))
                config.ca_file = cli_env("GABION_CA_FILE");
        if (r->key_file)
                n = read_key(r->key_file, key, err);
        else if (str_copy(key, sizeof(key), first_of(cli_env("GABION_API_KEY"), cli_env("E2B_API_KEY"), "")) < 0)
                n = err_set(err, -EINVAL, ERR_INVALID, "the API key is too long");
        if (n == 0)
                n = check_key(key, err);
        if (n == 0)
                n = client_new(&r->client, &config, err);
        explicit_bzero(key, sizeof(key));
        return n;
}

int remote_get(struct remote *r, const char *target, struct client_reply *ret, struct err *err) {
        const struct client_request q = { .method = "GET", .target = target };

        return client_ask(r->client, &q, ret, err);
}

/* --- values --- */

bool remote_pair(struct json *into, const char *text, bool from_env) {
        const char *eq = strchr(text, '='), *value = eq ? eq + 1 : NULL;
        char name[256];
        size_t n = eq ? (size_t) (eq - text) : strlen(text);

        if (n == 0 || n >= sizeof(name) || (!eq && !from_env))
                return false;
        memcpy(name, text, n);
        name[n] = '\0';
        json_set_str(into, name, value ? value : cli_env(name));
        return true;
}

int remote_seconds(const char *option, const char *text, uint64_t *ret, struct err *err) {
        static const struct {
                const char *name;
                uint64_t seconds;
        } units[] = { { "", 1 }, { "s", 1 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 } };
        size_t digits = strspn(text, "0123456789");
        char number[16];
        uint64_t v = 0;

        if (digits > 0 && digits < sizeof(number)) {
                memcpy(number, text, digits);
                number[digits] = '\0';
                for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                        if (str_eq(text + digits, units[i].name) && str_to_u64(number, SECONDS_MAX, &v) == 0 && v > 0) {
                                *ret = v * units[i].seconds;
                                return 0;
                        }
        }
        return err_set(err, -EINVAL, ERR_INVALID, "--%s '%.40s': a time such as 90s, 5m, 2h or 1d is expected", option,
                       text);
}

/* --- output --- */

int remote_print_json(const struct json *doc, bool pretty, struct err *err) {
        AUTO_FREE char *text = NULL;
        int r = json_text(doc, pretty, &text, err);

        if (r == 0)
                (void) puts(text);
        return r;
}

void remote_print(const char *text) {
        for (; *text; text++)
                (void) putchar((unsigned char) *text < 0x20 || *text == 0x7f ? '?' : *text);
}

void remote_warn(const char *fmt, ...) {
        struct err err = { 0 };
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(err.msg, sizeof(err.msg), fmt, ap);
        va_end(ap);
        (void) cli_fail(&err);
}
