/*
 * egress.c - `gabion egress log`: what sandboxes tried to reach, as a table or as the lines of the file.
 *
 * Theory of operation. The log is a file of JSON lines that running sandboxes append to, and that is renamed once when
 * it is full. Following it means to look for more bytes, and for another file under the name, several times a second.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "json/json.h"

enum { CHUNK = 65536, LINE_MAX_BYTES = 8192, LOOK_MS = 200 };

struct words {
        const char *file, *sandbox;
        bool follow, denied, json;
};

static int help(void) {
        (void) printf("Usage: gabion egress log [-f] [--sandbox ID] [--denied] [--json] [--file FILE]\n\n"
                      "  -f, --follow     wait for more\n"
                      "  --sandbox ID     of one sandbox only\n"
                      "  --denied         refused attempts only\n"
                      "  --json           the records, one JSON document per line\n"
                      "  --file FILE      another log (default: %s)\n",
                      cli_egress_log());
        return 0;
}

static bool wanted(const struct words *w, const struct json *r) {
        const char *sandbox = json_get_str(r, "sandbox"), *decision = json_get_str(r, "decision");

        if (w->sandbox && !(sandbox && str_eq(sandbox, w->sandbox)))
                return false;
        return !w->denied || (decision && str_eq(decision, "deny"));
}

/* Sandboxes choose names; a terminal must not obey them. */
static void clean(char *s) {
        for (; *s; s++)
                if ((unsigned char) *s < 0x20 || (unsigned char) *s > 0x7e)
                        *s = '?';
}

static const char *or_dash(const char *s) {
        return s ? s : "-";
}

static void print_row(const struct json *r) {
        const char *name = json_get_str(r, "name"), *address = json_get_str(r, "address");
        const char *time = or_dash(json_get_str(r, "time")), *code = json_get_str(r, "code");
        int64_t port = json_get_int(r, "port", 0), count = json_get_int(r, "count", 1);
        char what[320], bytes[48] = "", row[720], times[24] = "";

        if (port == 0)
                (void) snprintf(what, sizeof(what), "%.250s", name ? name : or_dash(address));
        else
                (void) snprintf(what, sizeof(what),
                                !name && address && strchr(address, ':') ? "[%.250s]:%" PRId64 : "%.250s:%" PRId64,
                                name ? name : or_dash(address), port);
        if (json_get(r, "bytes_out"))
                (void) snprintf(bytes, sizeof(bytes), "%" PRId64 "/%" PRId64, json_get_int(r, "bytes_out", 0),
                                json_get_int(r, "bytes_in", 0));
        if (count > 1)
                (void) snprintf(times, sizeof(times), " x%" PRId64, count);
        (void) snprintf(row, sizeof(row), "%-24.24s %-20.20s %-6.6s %-6.6s %-44s %-17s %-22s %s%s", time,
                        or_dash(json_get_str(r, "sandbox")), or_dash(json_get_str(r, "kind")),
                        or_dash(json_get_str(r, "decision")), what, bytes, or_dash(json_get_str(r, "rule")),
                        code              ? code
                        : name && address ? address
                                          : "",
                        times);
        clean(row);
        (void) printf("%s\n", row);
}

static void on_line(const struct words *w, const char *line, size_t n) {
        CLEANUP(json_freep) struct json *r = NULL;
        struct err e = { 0 };

        if (json_parse("record", line, n, &r, &e) < 0 || !wanted(w, r))
                return;
        if (w->json)
                (void) printf("%.*s\n", (int) n, line);
        else
                print_row(r);
}

/* All whole lines that are there now; the rest stays in b. */
static int drain(const struct words *w, int fd, struct buf *b) {
        char chunk[CHUNK];
        ssize_t n;

        while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
                char *end;

                buf_add(b, chunk, (size_t) n);
                while (b->len > 0 && (end = memchr(b->p, '\n', b->len))) {
                        size_t len = (size_t) (end - b->p);

                        on_line(w, b->p, len);
                        buf_eat(b, len + 1);
                }
                if (b->len > LINE_MAX_BYTES || b->bad)
                        return -EBADMSG;
        }
        return n < 0 ? -errno : 0;
}

/* True when the name leads to another file than fd: the log was started anew. */
static bool moved(const char *path, int fd) {
        struct stat a, b;

        return stat(path, &a) == 0 && fstat(fd, &b) == 0 && (a.st_ino != b.st_ino || a.st_dev != b.st_dev);
}

static int show_file(const struct words *w, const char *path, bool follow, struct err *err) {
        CLEANUP(buf_done) struct buf b = BUF_INIT(CHUNK + 2 * LINE_MAX_BYTES);
        AUTO_FD int fd = -1;
        int r = 0;

        for (;;) {
                if (fd < 0)
                        fd = open(path, O_RDONLY | O_CLOEXEC);
                if (fd < 0 && errno != ENOENT)
                        return err_set(err, -errno, ERR_INVALID, "%.150s: %s", path, strerror(errno));
                r = fd < 0 ? 0 : drain(w, fd, &b);
                if (r < 0)
                        return err_set(err, r, ERR_INVALID, "%.150s: it is no egress log", path);
                (void) fflush(stdout);
                if (!follow || ferror(stdout))
                        return 0;
                if (fd >= 0 && moved(path, fd) && drain(w, fd, &b) == 0)
                        (void) close(TAKE_FD(fd));
                else
                        (void) poll(NULL, 0, LOOK_MS);
        }
}

static int words_read(int argc, char **argv, struct words *w) {
        static const struct option longs[] = {
                { "follow", 0, NULL, 'f' },
                { "sandbox", 1, NULL, 's' },
                { "denied", 0, NULL, 'd' },
                { "json", 0, NULL, 'j' },
                { "file", 1, NULL, 'F' },
                { "help", 0, NULL, 'h' },
                { 0 },
        };
        int key;

        opterr = 0;
        optind = 1;
        while ((key = getopt_long(argc, argv, ":fh", longs, NULL)) != -1)
                switch (key) {
                case 'f':
                        w->follow = true;
                        break;
                case 's':
                        w->sandbox = optarg;
                        break;
                case 'd':
                        w->denied = true;
                        break;
                case 'j':
                        w->json = true;
                        break;
                case 'F':
                        w->file = optarg;
                        break;
                case 'h':
                        return help();
                default:
                        return cli_usage("egress",
                                         key == ':' ? "option '%.40s' needs a value" : "unknown option '%.40s'",
                                         argv[optind - 1]);
                }
        return argc == optind ? -1 : cli_usage("egress", "log: '%.40s' is not expected", argv[optind]);
}

int cmd_egress(int argc, char **argv) {
        struct words w = { .file = cli_egress_log() };
        struct err err = { 0 };
        char old[1200];
        int r;

        if (argc > 1 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")))
                return help();
        if (argc < 2 || !str_eq(argv[1], "log"))
                return cli_usage("egress", "'log' is expected");
        r = words_read(argc - 1, argv + 1, &w);
        if (r != -1)
                return r;
        if (access(w.file, F_OK) < 0 && !w.follow)
                return cli_usage("egress", "%.150s: %s", w.file, strerror(errno));
        if (!w.json)
                (void) printf("%-24s %-20s %-6s %-6s %-44s %-17s %-22s %s\n", "TIME", "SANDBOX", "KIND", "RESULT",
                              "DESTINATION", "BYTES OUT/IN", "RULE", "REASON OR ADDRESS");
        (void) snprintf(old, sizeof(old), "%.1100s.1", w.file);
        if (show_file(&w, old, false, &err) < 0 || show_file(&w, w.file, w.follow, &err) < 0)
                return cli_fail(&err);
        return 0;
}
