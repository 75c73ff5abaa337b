/*
 * net_packages.c - preset packages: which files and variables of this machine's package clients are read.
 *
 * A client that nobody has configured adds nothing, since what is built into it is not written in any file that we
 * could show; a note says so. No host is known to this program.
 */
#include "policy/net_packages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "policy/decode.h"
#include "policy/net_flags.h"
#include "policy/net_rules.h"
#include "policy/policy.h"

enum { FILE_BYTES = 64 * 1024, FILES = 64 };

struct search {
        struct policy_net *net;
        const struct policy_packages *from;
        bool found; /* by the client that is being looked at */
};

static const char *env(const struct search *s, const char *name) {
        return s->from->env ? s->from->env(name) : "";
}

static int note(struct search *s, const char *text, struct err *err) {
        return net_note(s->net, text) < 0 ? err_set(err, -ENOMEM, ERR_INTERNAL, "preset packages") : 0;
}

static int took(struct search *s, int r) {
        s->found = s->found || r == 0;
        return r == -ENOENT ? 0 : r;
}

/* A file that is not there says nothing; one that cannot be read is noted; one that is too large is an error, because
 * half of a configuration is not the configuration. */
static int read_one(struct search *s, enum net_client client, const char *path, struct err *err) {
        AUTO_FREE char *text = malloc(FILE_BYTES + 1);
        char whole[PATH_MAX], why[PATH_MAX + 64];
        struct stat st;
        int n;

        if (!text)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "preset packages");
        n = snprintf(whole, sizeof(whole), "%s%s", s->from->root, path);
        if (n < 0 || (size_t) n >= sizeof(whole))
                return 0;
        AUTO_FD int fd = open(whole, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

        if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
                return 0;
        n = fd < 0 || fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
        if (n == 0)
                n = fd_read_upto(fd, text, FILE_BYTES + 1);
        if (n == -EFBIG)
                return err_set(err, n, ERR_LIMIT, "%.200s: too large for a configuration file", whole);
        if (n < 0) {
                (void) snprintf(why, sizeof(why), "%s: %s: cannot be read", net_client_name(client), whole);
                return note(s, why, err);
        }
        return took(s, net_packages_text(s->net, client, whole, text, err));
}

/* DIR and NAME, if DIR is known. */
static int read_in(struct search *s, enum net_client client, const char *dir, const char *name, struct err *err) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

        return *dir != '/' || n < 0 || (size_t) n >= sizeof(path) ? 0 : read_one(s, client, path, err);
}

static int read_env(struct search *s, enum net_client client, const char *name, struct err *err) {
        const char *value = env(s, name);
        char where[64];

        (void) snprintf(where, sizeof(where), "$%s", name);
        return *value ? took(s, net_packages_value(s->net, client, where, value, err)) : 0;
}

/* ~/.config, or what the caller has instead. */
static void config_dir(const struct search *s, char dst[PATH_MAX]) {
        const char *xdg = env(s, "XDG_CONFIG_HOME");
        int n = *xdg == '/' ? snprintf(dst, PATH_MAX, "%s", xdg) : snprintf(dst, PATH_MAX, "%s/.config", s->from->home);

        if (n < 0 || n >= PATH_MAX || (*xdg != '/' && *s->from->home != '/'))
                dst[0] = '\0';
}

/* --- clients --- */

static bool has_suffix(const char *s, const char *suffix) {
        size_t n = strlen(s), k = strlen(suffix);

        return n > k && str_eq(s + n - k, suffix);
}

/* In the order of names, so that the same machine always gives the same policy. */
static int read_apt(struct search *s, struct err *err) {
        static const char dir[] = "/etc/apt/sources.list.d";
        struct dirent **names = NULL;
        char whole[PATH_MAX];
        int r = read_one(s, NET_APT_LIST, "/etc/apt/sources.list", err), n = 0, k;

        k = snprintf(whole, sizeof(whole), "%s%s", s->from->root, dir);
        if (r == 0 && k > 0 && (size_t) k < sizeof(whole))
                n = scandir(whole, &names, NULL, alphasort);
        for (int i = 0; i < n; i++) {
                const char *name = names[i]->d_name;

                if (r == 0 && i >= FILES)
                        r = err_set(err, -E2BIG, ERR_LIMIT, "%.200s: more than %d files", whole, FILES);
                if (r == 0 && has_suffix(name, ".list"))
                        r = read_in(s, NET_APT_LIST, dir, name, err);
                else if (r == 0 && has_suffix(name, ".sources"))
                        r = read_in(s, NET_APT_SOURCES, dir, name, err);
                free(names[i]);
        }
        free(names);
        return r;
}

static int read_pip(struct search *s, struct err *err) {
        static const char *const variables[] = { "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL" };
        char config[PATH_MAX];
        int r = 0;

        config_dir(s, config);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(variables); i++)
                r = read_env(s, NET_PIP, variables[i], err);
        if (r < 0 || str_eq(env(s, "PIP_CONFIG_FILE"), "/dev/null")) /* pip then reads no file at all */
                return r;
        r = read_one(s, NET_PIP, "/etc/pip.conf", err);
        if (r == 0)
                r = read_in(s, NET_PIP, s->from->home, ".pip/pip.conf", err);
        if (r == 0)
                r = read_in(s, NET_PIP, config, "pip/pip.conf", err);
        if (r == 0)
                r = read_in(s, NET_PIP, env(s, "VIRTUAL_ENV"), "pip.conf", err);
        if (r == 0 && *env(s, "PIP_CONFIG_FILE") == '/')
                r = read_one(s, NET_PIP, env(s, "PIP_CONFIG_FILE"), err);
        return r;
}

static int read_npm(struct search *s, struct err *err) {
        static const char *const variables[] = { "npm_config_registry", "NPM_CONFIG_REGISTRY" };
        static const char *const files[] = { "/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc" };
        const char *user = env(s, "NPM_CONFIG_USERCONFIG");
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(variables); i++)
                r = read_env(s, NET_NPM, variables[i], err);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
                r = read_one(s, NET_NPM, files[i], err);
        if (r == 0)
                r = *user == '/' ? read_one(s, NET_NPM, user, err) : read_in(s, NET_NPM, s->from->home, ".npmrc", err);
        return r;
}

/* Here a nearer setting replaces the others: the go command does the same, and its own go.env always has one. */
static int read_go(struct search *s, struct err *err) {
        static const char *const roots[] = { "/usr/local/go", "/usr/lib/go" };
        char config[PATH_MAX];
        int r = read_env(s, NET_GO, "GOPROXY", err);

        config_dir(s, config);
        if (r == 0 && !s->found)
                r = read_in(s, NET_GO, config, "go/env", err);
        if (r == 0 && !s->found)
                r = read_in(s, NET_GO, env(s, "GOROOT"), "go.env", err);
        for (size_t i = 0; r == 0 && !s->found && i < ARRAY_SIZE(roots); i++)
                r = read_in(s, NET_GO, roots[i], "go.env", err);
        return r;
}

static int read_cargo(struct search *s, struct err *err) {
        static const char *const files[] = { "config", "config.toml" };
        const char *own = env(s, "CARGO_HOME");
        char home[PATH_MAX];
        int r = 0, n = snprintf(home, sizeof(home), "%s/.cargo", s->from->home);

        if (n < 0 || (size_t) n >= sizeof(home))
                home[0] = '\0';
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
                r = read_in(s, NET_CARGO, *own ? own : home, files[i], err);
        return r;
}

int policy_net_expand(struct policy *p, const struct policy_packages *from, struct err *err) {
        static const struct {
                enum net_client client;
                int (*fn)(struct search *s, struct err *err);
        } clients[] = { { NET_APT_LIST, read_apt },
                        { NET_PIP, read_pip },
                        { NET_NPM, read_npm },
                        { NET_GO, read_go },
                        { NET_CARGO, read_cargo } };
        CLEANUP(policy_freep) struct policy *copy = NULL;
        char text[64];
        int r = 0;

        if (!p->net || !p->net->packages)
                return 0;
        r = policy_copy(p, &copy, err);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(clients); i++) {
                struct search s = { .net = copy->net, .from = from };

                r = clients[i].fn(&s, err);
                if (r < 0 || s.found)
                        continue;
                (void) snprintf(text, sizeof(text), "%s: nothing is configured", net_client_name(clients[i].client));
                r = note(&s, text, err);
        }
        if (r < 0)
                return err_wrap(err, "network.preset: packages");
        copy->net->packages = false;
        r = policy_check(copy, err);
        if (r == 0)
                policy_move(p, copy);
        return r;
}
