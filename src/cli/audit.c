/* audit.c - `gabion audit`: reads, verifies and exports the audit log. Needs its files, and no server. */
#include "cli/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "json/json.h"
#include "notary/notary.h"
#include "run/remote.h"

enum { ROTATE_MS = 60000, BAD_LOG = 1, DRIFT = 1 };

const char *audit_log_dir(void) {
        static char dir[512];

        if (geteuid() == 0)
                return "/var/lib/gabion/audit";
        (void) snprintf(dir, sizeof(dir), "%.400s/audit", cli_key_dir());
        return dir;
}

static int help(void) {
        (void) printf("Usage: gabion audit ACTION [OPTIONS]\n\n"
                      "  tail [-n N] [-f]              the last records (20), and with -f those that follow\n"
                      "  show SANDBOX                  everything about one sandbox, as one timeline\n"
                      "  verify                        is the log as it was written? exit 0 yes, 1 no\n"
                      "  head                          the newest signed head, to keep elsewhere\n"
                      "  export                        records for a collector, from where the last export stopped\n"
                      "  rotate-key                    a new signing key; the old one signs it\n"
                      "  check SANDBOX                 is a running sandbox still as planned? exit 0 yes, 1 no\n\n"
                      "  --log DIR           the log (default %s)\n"
                      "  --tenant NAME       whose records (default: local; verify: all)\n"
                      "  --json              records or verdict as JSON\n"
                      "  --key FILE          verify: a public key to trust instead of those beside the log\n"
                      "  --head FILE         verify: a head that was kept elsewhere; the log must contain it\n"
                      "  --socket PATH       rotate-key: ask a running notary\n"
                      "  --format FORM       export: ocsf (default), syslog, cef, otlp, hec, webhook\n"
                      "  --to WHERE          export: - (default), http(s)://..., tcp://ADDRESS:PORT, unix:PATH\n"
                      "  --cursor FILE       export: remembers what was delivered\n"
                      "  --follow            export: go on with what comes; tail: the same as -f\n"
                      "  --secret FILE       export: the webhook's key (whsec_... or whsk_...)\n"
                      "  --headers FILE      export: more lines for the HTTP head, such as a token\n",
                      audit_log_dir());
        return 0;
}

#define AT(member) offsetof(struct audit_words, member)
static const struct {
        char key;
        size_t offset;
} strings[] = {
        { 'l', AT(log) },    { 't', AT(tenant) }, { 'k', AT(key) },    { 'H', AT(saved) },  { 's', AT(socket) },
        { 'F', AT(format) }, { 'o', AT(to) },     { 'c', AT(cursor) }, { 'S', AT(secret) }, { 'D', AT(headers) },
};
#undef AT

int audit_words_read(int argc, char **argv, const char *allowed, struct audit_words *w) {
        static const struct option longs[] = {
                { "log", 1, NULL, 'l' },    { "tenant", 1, NULL, 't' },
                { "json", 0, NULL, 'j' },   { "key", 1, NULL, 'k' },
                { "head", 1, NULL, 'H' },   { "socket", 1, NULL, 's' },
                { "format", 1, NULL, 'F' }, { "to", 1, NULL, 'o' },
                { "cursor", 1, NULL, 'c' }, { "follow", 0, NULL, 'f' },
                { "secret", 1, NULL, 'S' }, { "headers", 1, NULL, 'D' },
                { "lines", 1, NULL, 'n' },  { 0 },
        };
        int key;

        *w = (struct audit_words){ .log = audit_log_dir(), .count = 20, .format = "ocsf", .to = "-" };
        opterr = 0;
        optind = 1;
        while ((key = getopt_long(argc, argv, ":n:f", longs, NULL)) != -1) {
                if (key == ':' || key == '?' || !strchr(allowed, key))
                        return cli_usage("audit", "%.20s: option '%.40s' is not known here, or needs a value", argv[0],
                                         cli_refused(argc, argv));
                if (key == 'n' && str_to_u64(optarg, 1000000, &w->count) < 0)
                        return cli_usage("audit", "-n '%.20s': a number up to 1000000 is expected", optarg);
                w->json |= key == 'j';
                w->follow |= key == 'f';
                for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
                        if (strings[i].key == key)
                                *(const char **) ((char *) w + strings[i].offset) = optarg;
        }
        w->args = (const char *const *) argv + optind;
        w->n_args = (size_t) (argc - optind);
        return -1;
}

/* --- verify --- */

struct verifying {
        const struct audit_words *w;
        struct ledger_trust *trust;
        char *saved;
        struct json *list;
        unsigned bad, all;
};

static void verdict_print(const char *tenant, const struct ledger_verdict *v) {
        char time[CLOCK_TEXT];

        clock_rfc3339_at(time, v->time_ms);
        if (v->ok)
                (void) printf("%s: ok, %" PRIu64 " records%s, signed %s\n", tenant, v->size,
                              v->first_kept > 1 ? " (older ones were dropped by retention)" : "", time);
        else
                (void) printf("%s: BAD at record %" PRIu64 "%s%s (line %" PRIu64 "): %s\n", tenant, v->seq,
                              v->file[0] ? ", file " : "", v->file, v->line, v->why);
}

static void verdict_json(struct json *list, const char *tenant, const struct ledger_verdict *v) {
        struct json *o = json_new_object();

        json_set_str(o, "tenant", tenant);
        json_set_bool(o, "ok", v->ok);
        json_set_int(o, "records", (int64_t) v->size);
        json_set_int(o, "first_kept", (int64_t) v->first_kept);
        if (!v->ok) {
                json_set_int(o, "record", (int64_t) v->seq);
                json_set_str(o, "file", v->file);
                json_set_int(o, "line", (int64_t) v->line);
                json_set_str(o, "why", v->why);
        }
        json_add(list, o);
}

static int verify_one(void *arg, const char *tenant) {
        struct verifying *vf = arg;
        static struct ledger_verdict v;
        static struct ledger_trust trust;
        struct err err = { 0 };
        bool right_head;

        trust = *vf->trust; /* changes of keys are found anew in each chain */
        right_head = vf->saved && str_has_prefix(vf->saved, "gabion/") &&
                     strncmp(vf->saved + 7, tenant, strlen(tenant)) == 0 && vf->saved[7 + strlen(tenant)] == '\n';
        trust.saved = right_head ? vf->saved : NULL;
        if (ledger_verify(vf->w->log, tenant, &trust, false, &v, &err) < 0) {
                v = (struct ledger_verdict){ .first_kept = 1 };
                (void) snprintf(v.why, sizeof(v.why), "%.300s", err.msg);
        }
        vf->all++;
        vf->bad += !v.ok;
        if (vf->list)
                verdict_json(vf->list, tenant, &v);
        else
                verdict_print(tenant, &v);
        return 0;
}

static int verify(const struct audit_words *w) {
        static struct ledger_trust trust;
        CLEANUP(json_freep) struct json *list = w->json ? json_new_array() : NULL;
        AUTO_FREE char *text = NULL;
        char saved[AUDIT_HEAD_BYTES];
        struct verifying vf = { .w = w, .trust = &trust, .list = list };
        struct err err = { 0 };
        int r = 0;

        if (w->n_args > 0)
                return cli_usage("audit", "verify: no arguments are expected");
        if (w->key) {
                r = sign_public_read(w->key, trust.keys[0], &err);
                trust.n_keys = 1;
        } else {
                r = ledger_own_keys(w->log, &trust, &err);
        }
        if (r == 0 && w->saved) {
                r = fd_read_at(AT_FDCWD, w->saved, saved, sizeof(saved));
                r = r < 0 ? err_set(&err, r, ERR_INVALID, "--head %.100s: %s", w->saved, strerror(-r)) : 0;
                vf.saved = saved;
        }
        if (r == 0)
                r = w->tenant ? verify_one(&vf, w->tenant) : ledger_tenants(w->log, verify_one, &vf, &err);
        if (r < 0)
                return cli_fail(&err);
        if (list && json_text(list, false, &text, &err) == 0)
                (void) printf("%s\n", text);
        if (vf.all == 0 && !list)
                (void) printf("the log is empty\n");
        return vf.bad ? BAD_LOG : 0;
}

/* --- head, rotate-key --- */

static int head(const struct audit_words *w) {
        char note[AUDIT_HEAD_BYTES];
        struct audit_head h;
        struct err err = { 0 };

        if (ledger_head(w->log, w->tenant ? w->tenant : "local", note, &h, &err) < 0)
                return cli_fail(&err);
        (void) fputs(note, stdout);
        return 0;
}

static int rotate_key(const struct audit_words *w) {
        const struct ledger_settings s = { .dir = w->log, .readers = (gid_t) -1 };
        CLEANUP(ledger_freep) struct ledger *l = NULL;
        struct notary_client c;
        struct err err = { 0 };
        int r;

        if (w->socket) {
                r = notary_connect(w->socket, &c, &err);
                if (r == 0)
                        r = notary_rotate(&c, ROTATE_MS, &err);
                notary_close(&c);
        } else if (!ledger_is(w->log)) {
                r = err_set(&err, -ENOENT, ERR_NOT_FOUND, "%.150s is no audit log", w->log);
        } else {
                r = ledger_open(&s, &l, &err);
                if (r == 0)
                        r = ledger_rotate_key(l, &err);
        }
        if (r < 0)
                return cli_fail(&err);
        (void) printf("the key was changed; give keys/signing.pub to those who verify. The old public key stays as\n"
                      "keys/retired-*.pub and is still enough to verify the whole log.\n");
        return 0;
}

static int check(const struct audit_words *w) {
        char control[REMOTE_CONTROL], found[REMOTE_FOUND];
        struct err err = { 0 };
        AUTO_FD int fd = -1;
        int r;

        if (w->n_args != 1)
                return cli_usage("audit", "check: the id of one sandbox is expected");
        fd = r = remote_open(w->args[0], &err);
        if (r >= 0)
                r = remote_check(fd, control, found, &err);
        if (r < 0)
                return cli_fail(&err);
        if (r == 0)
                (void) printf("%s: as planned\n", w->args[0]);
        else
                (void) printf("%s: DRIFT: %s: %s\n", w->args[0], control, found);
        return r == 0 ? 0 : DRIFT;
}

static const struct {
        const char *name, *allowed; /* keys of the options, as in audit_words_read() */
        int (*fn)(const struct audit_words *w);
} actions[] = {
        { "tail", "ltjnf", audit_tail }, { "show", "ltj", audit_show },          { "verify", "ltjkH", verify },
        { "head", "lt", head },          { "export", "ltfFocSD", audit_export }, { "rotate-key", "ls", rotate_key },
        { "check", "", check },
};

int cmd_audit(int argc, char **argv) {
        struct audit_words w;
        const char *name = argc > 1 ? argv[1] : "";

        if (str_eq(name, "--help") || str_eq(name, "-h"))
                return help();
        for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
                if (str_eq(actions[i].name, name)) {
                        int r = argc > 2 && (str_eq(argv[2], "--help") || str_eq(argv[2], "-h"))
                                        ? help()
                                        : audit_words_read(argc - 1, argv + 1, actions[i].allowed, &w);

                        return r != -1 ? r : actions[i].fn(&w);
                }
        return cli_usage("audit", "tail, show, verify, head, export, rotate-key or check is expected");
}
