/*
 * file.c - a policy from a file.
 *
 * The file is judged by its descriptor before a byte is read: a FIFO must not block us, a device must not be drained,
 * and a huge file must not be loaded. Symbolic links are followed, since operators keep policies behind them; relative
 * sources of mounts then belong to the directory of the name that was given.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "json/json.h"
#include "policy/decode.h"
#include "policy/policy.h"

static int fail(const struct field_ctx *ctx, int code, enum err_kind kind, const char *problem, struct err *err) {
        (void) field_error(ctx, err, "%s", problem);
        err->code = code;
        err->kind = kind;
        return code;
}

static int read_text(const struct field_ctx *ctx, char *dst, size_t cap, struct err *err) {
        AUTO_FD int fd = open(ctx->what, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;
        int n;

        if (fd < 0)
                return fail(ctx, -errno, errno == ENOENT ? ERR_NOT_FOUND : ERR_INVALID, strerrordesc_np(errno), err);
        if (fstat(fd, &st) < 0)
                return fail(ctx, -errno, ERR_INTERNAL, strerrordesc_np(errno), err);
        if (!S_ISREG(st.st_mode))
                return fail(ctx, -EINVAL, ERR_INVALID, "not a regular file", err);
        n = st.st_size < (off_t) cap ? fd_read_upto(fd, dst, cap) : -EFBIG;
        if (n == -EFBIG)
                return fail(ctx, n, ERR_LIMIT, "too large for a policy; allowed: 256K", err);
        if (n < 0)
                return fail(ctx, n, ERR_INTERNAL, strerrordesc_np(-n), err);
        return n;
}

static bool has_suffix(const char *s, const char *suffix) {
        size_t n = strlen(s), k = strlen(suffix);

        return n >= k && str_eq(s + n - k, suffix);
}

/* Appends rel to the directory in dir. Only a leading "./" is dropped: what ".." means depends on links. */
static int join(char dir[POLICY_PATH], const char *rel) {
        size_t n = strlen(dir);
        int k;

        while (rel[0] == '.' && rel[1] == '/')
                rel += 1 + strspn(rel + 1, "/");
        if (!*rel || str_eq(rel, "."))
                return 0;
        if (*rel == '/')
                return str_copy(dir, POLICY_PATH, rel);
        k = snprintf(dir + n, POLICY_PATH - n, "%s%s", n > 0 && dir[n - 1] == '/' ? "" : "/", rel);
        return k >= 0 && (size_t) k < POLICY_PATH - n ? 0 : -ENAMETOOLONG;
}

/* The directory of the file, absolute. */
static int directory_of(const char *path, char dst[POLICY_PATH]) {
        const char *slash = strrchr(path, '/');
        char named[POLICY_PATH];

        if (!getcwd(dst, POLICY_PATH))
                return errno == ERANGE ? -ENAMETOOLONG : -errno;
        if (!slash)
                return 0;
        if (slash - path + 1 >= POLICY_PATH)
                return -ENAMETOOLONG;
        memcpy(named, path, (size_t) (slash - path + 1));
        named[slash - path + (slash == path)] = '\0'; /* of "/x" it is "/" */
        return join(dst, named);
}

static int absolute_sources(const struct field_ctx *ctx, struct policy *p, struct err *err) {
        char dir[POLICY_PATH];

        for (size_t i = 0; i < p->n_mounts; i++) {
                char *path = p->mounts[i].source;
                int r;

                if (*path == '/')
                        continue;
                r = directory_of(ctx->what, dir);
                if (r == 0)
                        r = join(dir, path);
                if (r == -ENAMETOOLONG)
                        return fail(ctx, r, ERR_INVALID, "a mount's source is too long with the file's directory", err);
                if (r < 0)
                        return fail(ctx, r, ERR_INTERNAL, strerrordesc_np(-r), err);
                (void) str_copy(path, POLICY_PATH, dir);
        }
        return 0;
}

typedef int (*decode_fn)(const struct field_ctx *ctx, const struct json *doc, struct policy *p, struct err *err);

static int read_policy(const char *path, decode_fn decode, struct policy *p, struct err *err) {
        CLEANUP(json_lines_freep) struct json_lines *lines = NULL;
        CLEANUP(json_freep) struct json *doc = NULL;
        CLEANUP(policy_freep) struct policy *copy = NULL;
        AUTO_FREE char *text = malloc(POLICY_FILE_BYTES + 1);
        struct field_ctx ctx = { .what = path };
        struct err why;
        int r;

        if (!text)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "read policy");
        r = read_text(&ctx, text, POLICY_FILE_BYTES + 1, err);
        if (r < 0)
                return r;
        if (has_suffix(path, ".json"))
                r = json_parse(path, text, (size_t) r, &doc, err);
        else
                r = json_parse_yaml(path, text, (size_t) r, &doc, &lines, err);
        if (r < 0)
                return r;
        r = policy_copy(p, &copy, err);
        if (r < 0)
                return r;
        ctx.lines = lines;
        r = decode(&ctx, doc, copy, err);
        if (r < 0)
                return r;
        ctx.lines = NULL;
        r = absolute_sources(&ctx, copy, err);
        if (r < 0)
                return r;
        if (policy_check_parts(copy, &why) < 0) /* the directory's name is part of the sources now */
                return field_error(&ctx, err, "%s", why.msg);
        policy_move(p, copy);
        return 0;
}

int policy_read_file(const char *path, struct policy *p, struct err *err) {
        return read_policy(path, policy_decode_at, p, err);
}

int policy_read_net_file(const char *path, struct policy *p, struct err *err) {
        return read_policy(path, policy_decode_net_at, p, err);
}
