/* setup.c - see setup.h. */
#include "daemon/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "base/user.h"
#include "daemon/auth.h"
#include "daemon/daemon.h"
#include "store/store.h"

enum { KEY_LINE = AUTH_KEY };

int setup_user(const struct config *c, uid_t *ret_uid, gid_t *ret_gid, struct err *err) {
        bool made_up;
        int r;

        if (geteuid() != 0) {
                *ret_uid = geteuid();
                *ret_gid = getegid();
                return c->user[0] ? err_set(err, -EPERM, ERR_INVALID, "user: only root can become somebody else") : 0;
        }
        r = user_service(c->user, ret_uid, ret_gid, &made_up);
        if (r < 0)
                return err_set(err, r, ERR_INVALID, "user: '%.40s' %s", c->user,
                               r == -EPERM ? "must not be root" : "is not in /etc/passwd");
        return 0;
}

static int fail(struct err *err, const char *what, const char *path) {
        return err_set(err, -errno, ERR_INVALID, "%s %.150s: %s", what, path, strerror(errno));
}

int setup_data(const struct config *c, uid_t uid, gid_t gid, struct err *err) {
        struct stat st;

        if (mkdir(c->data, S_IRWXU) == 0) {
                if (geteuid() == 0 && chown(c->data, uid, gid) < 0)
                        return fail(err, "data directory", c->data);
        } else if (errno != EEXIST) {
                return fail(err, "data directory", c->data);
        }
        if (lstat(c->data, &st) < 0)
                return fail(err, "data directory", c->data);
        if (!S_ISDIR(st.st_mode) || st.st_uid != uid || (st.st_mode & (S_IRWXG | S_IRWXO)))
                return err_set(err, -EPERM, ERR_INVALID,
                               "data directory %.150s: must be a directory of user %u with mode 0700", c->data,
                               (unsigned) uid);
        return 0;
}

static void store_path(const struct config *c, char dst[DAEMON_PATH + 16]) {
        (void) snprintf(dst, DAEMON_PATH + 16, "%s/gabion.db", c->data);
}

/* Not made when there is a store already, because then there will be no key to write. A file with something else in it
 * is left alone. */
int setup_key_file(const struct config *c, struct err *err) {
        char path[DAEMON_PATH + 16], text[KEY_LINE + 2];
        bool known;
        ssize_t n;
        int fd;

        if (!c->key_file[0])
                return -1;
        store_path(c, path);
        known = access(path, F_OK) == 0;
        fd = open(c->key_file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (known ? 0 : O_CREAT), 0600);
        if (fd < 0)
                return known && errno == ENOENT ? -1 : fail(err, "key file", c->key_file);
        n = pread(fd, text, sizeof(text), 0);
        if (n < 0 || n == (ssize_t) sizeof(text) || (n > 0 && (n < 4 || memcmp(text, "e2b_", 4) != 0))) {
                (void) close(fd);
                return err_set(err, -EEXIST, ERR_INVALID, "key file %.150s: has something else in it", c->key_file);
        }
        return fd;
}

/* 32 random bytes, kept. */
static int server_key(struct daemon *d, struct err *err) {
        char path[DAEMON_PATH + 16], text[2 * HASH_BYTES + 2];
        AUTO_FD int fd = -1;
        int n;

        (void) snprintf(path, sizeof(path), "%s/server.key", d->config.data);
        n = fd_read_at(AT_FDCWD, path, text, sizeof(text));
        if (n == 2 * HASH_BYTES)
                return str_unhex(d->key, sizeof(d->key), text) < 0
                               ? err_set(err, -EBADMSG, ERR_INVALID, "%.150s: is no key", path)
                               : 0;
        if (n != -ENOENT)
                return err_set(err, n < 0 ? n : -EBADMSG, ERR_INVALID, "%.150s: is no key", path);
        if (getrandom(d->key, sizeof(d->key), 0) != (ssize_t) sizeof(d->key))
                return err_set(err, -EIO, ERR_INTERNAL, "no random numbers");
        str_hex(text, d->key, sizeof(d->key));
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return fail(err, "server key", path);
        n = fd_write_all(fd, text, strlen(text));
        if (n == 0 && fsync(fd) < 0)
                n = -errno;
        if (n < 0)
                (void) unlink(path);
        return n < 0 ? err_set(err, n, ERR_INTERNAL, "%.150s: %s", path, strerror(-n)) : 0;
}

static void tell(const struct config *c, const char *key) {
        bool tls = config_is_tls(c->listen[0]);
        const char *at = c->listen[0] + (tls ? strlen(CONFIG_TLS) : 0), *s = tls ? "s" : "";

        (void) printf("This is the only time that the first API key is shown:\n\n"
                      "  export E2B_API_KEY=%s\n",
                      key);
        if (!str_has_prefix(at, "unix:"))
                (void) printf("  export E2B_API_URL=http%s://%s\n"
                              "  export E2B_SANDBOX_URL=http%s://%s\n",
                              s, at, s, at);
        (void) printf("\n");
        (void) fflush(stdout);
}

static int hand_over(const struct config *c, const char *key, int key_fd, struct err *err) {
        char line[KEY_LINE + 1];
        int r;

        if (key_fd < 0) {
                tell(c, key);
                return 0;
        }
        (void) snprintf(line, sizeof(line), "%s\n", key);
        r = ftruncate(key_fd, 0) < 0 ? -errno : fd_write_all(key_fd, line, strlen(line));
        if (r == 0 && fsync(key_fd) < 0)
                r = -errno;
        explicit_bzero(line, sizeof(line));
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "key file %.150s: %s", c->key_file, strerror(-r)) : 0;
}

/* The key is handed over before it is valid: a crash in between costs another first start, not the way in. */
static int first_start(struct daemon *d, int key_fd, struct err *err) {
        struct store_tenant t = { .created_ms = clock_real_ms(), .quota = d->config.quota };
        struct store_key k = { .role = STORE_ADMIN, .created_ms = t.created_ms, .name = "first" };
        uint8_t hash[STORE_HASH];
        char text[AUTH_KEY];
        int r = auth_key_new(text, hash, k.mask, err);

        if (r == 0 && (id_new(t.id) < 0 || id_new(k.id) < 0))
                r = err_set(err, -EIO, ERR_INTERNAL, "no random numbers");
        if (r < 0)
                return r;
        (void) str_copy(t.name, sizeof(t.name), DAEMON_OPERATORS);
        (void) str_copy(k.tenant, sizeof(k.tenant), t.id);
        r = store_tenant_add(d->store, &t, err);
        if (r == 0)
                r = store_key_add(d->store, &k, hash, err);
        if (r == 0)
                r = hand_over(&d->config, text, key_fd, err);
        explicit_bzero(text, sizeof(text));
        return r;
}

int setup_store(struct daemon *d, int key_fd, struct err *err) {
        char path[DAEMON_PATH + 16];
        struct store_tenant t;
        int r;

        store_path(&d->config, path);
        r = store_open(path, &d->store, err);
        if (r == 0)
                r = server_key(d, err);
        if (r < 0)
                return r;
        r = store_tenant_get(d->store, DAEMON_OPERATORS, &t, err);
        return r == -ENOENT ? first_start(d, key_fd, err) : r;
}
