/* key.c - key files. The secret lives in guarded memory of libsodium's and has no way into a string. */
#include "sign/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"

struct sign_key *sign_key_free(struct sign_key *k) {
        if (k)
                sodium_free(k); /* wipes */
        return NULL;
}

void sign_key_freep(struct sign_key **k) {
        *k = sign_key_free(*k);
}

/* Exactly 2 * n hex digits and a newline. */
static int hex_read(int dir_fd, const char *name, uint8_t *dst, size_t n) {
        char text[2 * crypto_sign_SEEDBYTES + 2];
        size_t len;
        int r = fd_read_at(dir_fd, name, text, sizeof(text));

        if (r >= 0 &&
            ((size_t) r != 2 * n + 1 || sodium_hex2bin(dst, n, text, 2 * n, NULL, &len, NULL) != 0 || len != n))
                r = -EBADMSG;
        sodium_memzero(text, sizeof(text));
        return r < 0 ? r : 0;
}

static int hex_write(int dir_fd, const char *name, const uint8_t *p, size_t n, mode_t mode) {
        AUTO_FD int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        char text[2 * crypto_sign_SEEDBYTES + 1];
        int r = fd < 0 ? -errno : 0;

        (void) sodium_bin2hex(text, sizeof(text), p, n);
        if (r == 0 && fchmod(fd, mode) < 0) /* whatever the umask: the public half is for others */
                r = -errno;
        if (r == 0)
                r = fd_write_all(fd, text, 2 * n);
        if (r == 0)
                r = fd_write_all(fd, "\n", 1);
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        sodium_memzero(text, sizeof(text));
        return r;
}

static int seed_get(int dir_fd, const char *name, uint8_t seed[crypto_sign_SEEDBYTES]) {
        int r = hex_read(dir_fd, name, seed, crypto_sign_SEEDBYTES);

        if (r != -ENOENT)
                return r;
        randombytes_buf(seed, crypto_sign_SEEDBYTES);
        r = hex_write(dir_fd, name, seed, crypto_sign_SEEDBYTES, 0600);
        /* Somebody else may have made one in the same moment: theirs counts. */
        return r == -EEXIST ? hex_read(dir_fd, name, seed, crypto_sign_SEEDBYTES) : r;
}

static int dir_open(const char *dir, struct err *err) {
        AUTO_FD int dir_fd = -1;
        struct stat st;

        if (sodium_init() < 0)
                return err_set(err, -EIO, ERR_INTERNAL, "signing: no randomness");
        if (mkdir(dir, 0700) < 0 && errno != EEXIST)
                return err_set(err, -errno, ERR_INTERNAL, "signing key: %.150s: %s", dir, strerror(errno));
        dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0 || fstat(dir_fd, &st) < 0)
                return err_set(err, -errno, ERR_INTERNAL, "signing key: %.150s: %s", dir, strerror(errno));
        if (st.st_uid != geteuid() || (st.st_mode & 022))
                return err_set(err, -EPERM, ERR_DENIED, "signing key: %.150s must belong to you alone; chmod go-w it",
                               dir);
        return TAKE_FD(dir_fd);
}

static int retire(int dir_fd, const char *name, const uint8_t pub[SIGN_PUBLIC]) {
        char to[32], hex[17];

        str_hex(hex, pub, 8);
        (void) snprintf(to, sizeof(to), "retired-%s.pub", hex);
        return renameat(dir_fd, name, dir_fd, to) < 0 ? -errno : 0;
}

/* The public half beside the secret. One that belongs to another key was left by a change of keys that was cut short.
 */
static int public_keep(int dir_fd, const char *name, const uint8_t pub[SIGN_PUBLIC]) {
        uint8_t old[SIGN_PUBLIC];
        int r = hex_read(dir_fd, name, old, sizeof(old));

        if (r == 0 && memcmp(old, pub, sizeof(old)) == 0)
                return 0;
        if (r == 0)
                r = retire(dir_fd, name, old);
        r = r == -ENOENT ? 0 : r;
        if (r == 0)
                r = hex_write(dir_fd, name, pub, SIGN_PUBLIC, 0644);
        return r == -EEXIST ? 0 : r;
}

/* The pair STEM.key, STEM.pub in dir, made if there is none. */
static int pair_open(const char *dir, bool next, struct sign_key **ret, struct err *err) {
        CLEANUP(sign_key_freep) struct sign_key *k = NULL;
        uint8_t seed[crypto_sign_SEEDBYTES];
        AUTO_FD int dir_fd = dir_open(dir, err);
        int r;

        if (dir_fd < 0)
                return dir_fd;
        k = sodium_malloc(sizeof(*k));
        if (!k)
                return err_set(err, -ENOMEM, ERR_INTERNAL, "signing key: out of memory");
        r = seed_get(dir_fd, next ? "next.key" : "signing.key", seed);
        if (r == 0)
                (void) crypto_sign_seed_keypair(k->pub, k->secret, seed);
        sodium_memzero(seed, sizeof(seed));
        if (r == 0)
                r = public_keep(dir_fd, next ? "next.pub" : "signing.pub", k->pub);
        if (r < 0)
                return err_set(err, r, ERR_INTERNAL, "signing key in %.150s: %s", dir, strerror(-r));
        *ret = TAKE_PTR(k);
        return 0;
}

int sign_key_open(const char *dir, struct sign_key **ret, struct err *err) {
        return pair_open(dir, false, ret, err);
}

int sign_key_next(const char *dir, struct sign_key **ret, struct err *err) {
        return pair_open(dir, true, ret, err);
}

int sign_key_promote(const char *dir, struct err *err) {
        AUTO_FD int dir_fd = dir_open(dir, err);
        uint8_t old[SIGN_PUBLIC];
        int r;

        if (dir_fd < 0)
                return dir_fd;
        r = hex_read(dir_fd, "signing.pub", old, sizeof(old));
        /* The secret first: once it is in place, the rest can be made again from it. */
        if (r == 0 && renameat(dir_fd, "next.key", dir_fd, "signing.key") < 0)
                r = -errno;
        if (r == 0)
                r = retire(dir_fd, "signing.pub", old);
        if (r == 0 && (renameat(dir_fd, "next.pub", dir_fd, "signing.pub") < 0 || fsync(dir_fd) < 0))
                r = -errno;
        return r < 0 ? err_set(err, r, ERR_INTERNAL, "signing key in %.150s: %s", dir, strerror(-r)) : 0;
}

void sign_key_id(const struct sign_key *k, char dst[HASH_TEXT]) {
        hash_text(dst, k->pub, sizeof(k->pub));
}

int sign_public_read(const char *path, uint8_t dst[SIGN_PUBLIC], struct err *err) {
        int r = hex_read(AT_FDCWD, path, dst, SIGN_PUBLIC);

        return r < 0 ? err_set(err, r, ERR_INVALID, "public key %.150s: %s", path,
                               r == -EBADMSG || r == -EFBIG ? "64 hex digits are expected" : strerror(-r))
                     : 0;
}

void sign_key_public(const struct sign_key *k, uint8_t dst[SIGN_PUBLIC]) {
        memcpy(dst, k->pub, SIGN_PUBLIC);
}

void sign_bytes(const struct sign_key *k, const void *p, size_t n, uint8_t sig[SIGN_BYTES]) {
        (void) crypto_sign_detached(sig, NULL, p, n, k->secret);
}

void sign_seed(const uint8_t seed[SIGN_PUBLIC], const void *p, size_t n, uint8_t sig[SIGN_BYTES]) {
        struct sign_key k;

        (void) crypto_sign_seed_keypair(k.pub, k.secret, seed);
        sign_bytes(&k, p, n, sig);
        sodium_memzero(&k, sizeof(k));
}

bool sign_check(const uint8_t pub[SIGN_PUBLIC], const void *p, size_t n, const uint8_t sig[SIGN_BYTES]) {
        return sodium_init() >= 0 && crypto_sign_verify_detached(sig, p, n, pub) == 0;
}
